package untrusted

// Cut returns s cut to about limit bytes on rune boundaries with head and tail kept and the cut
// stated between them ("... 1234 bytes omitted ..."), and the number of bytes left out (0 when s fits).
func Cut(s string, limit int) (string, int) { return s, 0 }

// Head returns at most limit bytes of s, on a rune boundary, with "..." appended when it cut.
func Head(s string, limit int) string { return s }
