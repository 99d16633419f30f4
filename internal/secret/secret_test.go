package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
)

const canary = "c4nary-Secret/Value+1"

type holder struct {
	Public String
	hidden String
	list   []String
	byName map[string]String
	ptr    *String
}

// R-D5: no formatted Go value tells a secret, nested unexported fields included.
func TestStringNeverTells(t *testing.T) {
	s := New(canary)
	values := []any{
		s, &s, []String{s}, map[String]int{s: 1}, [1]String{s}, struct{ s String }{s}, &struct{ s String }{s},
		holder{Public: s, hidden: s, list: []String{s}, byName: map[string]String{"k": s}, ptr: &s},
		&holder{Public: s, hidden: s, list: []String{s}, byName: map[string]String{"k": s}, ptr: &s},
		fmt.Errorf("wrapped: %w", fmt.Errorf("inner %v", s)),
	}
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%T", "%10.3s", "%!"} {
			checkSilent(t, fmt.Sprintf(verb, v))
		}
		checkSilent(t, fmt.Sprint(v))
		if b, err := json.Marshal(v); err == nil {
			checkSilent(t, string(b))
		}
		if b, err := jsonv2.Marshal(v); err == nil {
			checkSilent(t, string(b))
		}
		var logged bytes.Buffer
		slog.New(slog.NewTextHandler(&logged, nil)).Info("m", "k", v)
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("m", "k", v)
		checkSilent(t, logged.String())
	}
}

// checkSilent fails when out holds the canary, plainly or in hexadecimal.
func checkSilent(t *testing.T, out string) {
	t.Helper()
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), canary[:8]} {
		if strings.Contains(out, form) {
			t.Errorf("the secret shows in %q", out)
		}
	}
}

func TestStringIsAValue(t *testing.T) {
	one, other := New("a"), New("a")
	if one != other || one == New("b") || New("") != (String{}) {
		t.Error("equality does not follow the text")
	}
	var zero String
	if !zero.IsEmpty() || zero.Reveal() != "" || New("x").IsEmpty() || New(canary).Reveal() != canary {
		t.Error("empty and non-empty are confused")
	}
}

// S34: a known value disappears from text in each of its usual forms.
func TestScrubberForms(t *testing.T) {
	const value = "p/ss<w>ö\"rd&\\+x=1 y"
	quoted, _ := json.Marshal(value)
	twice, _ := json.Marshal(string(quoted))
	forms := map[string]string{
		"raw":             value,
		"json":            string(quoted),
		"json in json":    string(twice),
		"go quoted":       fmt.Sprintf("%q", value),
		"go ascii quoted": fmt.Sprintf("%+q", value),
		"query":           url.QueryEscape(value),
		"query lower":     strings.ToLower(url.QueryEscape(value)),
		"path":            url.PathEscape(value),
		"url value":       url.Values{"k": {value}}.Encode(),
		"hex":             fmt.Sprintf("%x", value),
		"std":             base64.StdEncoding.EncodeToString([]byte(value)),
		"rawstd":          base64.RawStdEncoding.EncodeToString([]byte(value)),
		"url":             base64.URLEncoding.EncodeToString([]byte(value)),
		"all percent":     "%70%2f%73%73%3c%77%3e%c3%b6%22%72%64%26%5c%2b%78%3d%31%20%79",
		"all PERCENT":     "%70%2F%73%73%3C%77%3E%C3%B6%22%72%64%26%5C%2B%78%3D%31%20%79",
		"all escaped":     `\u0070\u002f\u0073\u0073\u003c\u0077\u003e\u00f6\u0022\u0072\u0064\u0026\u005c\u002b\u0078\u003d\u0031\u0020\u0079`,
		"all bytes":       `\x70\x2f\x73\x73\x3c\x77\x3e\xc3\xb6\x22\x72\x64\x26\x5c\x2b\x78\x3d\x31\x20\x79`,
		"rawurl":          base64.RawURLEncoding.EncodeToString([]byte(value)),
	}
	s := NewScrubber(New(value))
	for name, form := range forms {
		in := "before " + form + " after"
		got := s.Text(in)
		if !strings.Contains(got, Redacted) || strings.Contains(got, "rd") {
			t.Errorf("%s: %q became %q", name, in, got)
		}
		if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
			t.Errorf("%s: the neighbours changed: %q", name, got)
		}
		if b := s.Bytes([]byte(in)); string(b) != got {
			t.Errorf("%s: Bytes gave %q, Text %q", name, b, got)
		}
	}
}

// S34: a password inside "Basic ..." is gone whatever stands around it.
func TestScrubberInsideBase64(t *testing.T) {
	const value = "s3cret-token-value"
	s := NewScrubber(New(value))
	for before := range 7 {
		for after := range 5 {
			whole := strings.Repeat("u", before) + value + strings.Repeat("z", after)
			encoded := base64.StdEncoding.EncodeToString([]byte(whole))
			got := s.Text("Basic " + encoded)
			if !strings.Contains(got, Redacted) {
				t.Fatalf("%d before, %d after: %q stays", before, after, got)
			}
			rest := strings.Split(strings.TrimPrefix(got, "Basic "), Redacted)
			if n := len(strings.Join(rest, "")); n > len(encoded)-len(value)*8/6+3 {
				t.Errorf("%d before, %d after: too much left: %q", before, after, got)
			}
		}
	}
}

func TestScrubberRules(t *testing.T) {
	tests := []struct {
		name     string
		values   []string
		in, want string
	}{
		{"short values are ignored", []string{"short", "", "x"}, "a short x", "a short x"},
		{"exactly the shortest", []string{"sixsix"}, "a sixsix b", "a [redacted] b"},
		{"longest first", []string{"abcdef", "abcdefghij"}, "<abcdefghij>", "<[redacted]>"},
		{"overlapping", []string{"abcdefgh", "efghijkl"}, "<abcdefghijkl>", "<[redacted]>"},
		{"repeated", []string{"abcdef"}, "abcdef abcdef", "[redacted] [redacted]"},
		{"whole text", []string{"abcdef"}, "abcdef", "[redacted]"},
		{"nothing", []string{"abcdef"}, "", ""},
		{"self-overlapping", []string{"aaaaaa"}, "baaaaaaaab", "b[redacted]b"},
		{"near miss", []string{"abcdef"}, "abcdeg", "abcdeg"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := NewScrubber()
			for _, v := range tt.values {
				s.Add(New(v))
			}
			if got := s.Text(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	var none *Scrubber
	none.Add(New(canary))
	in := []byte(canary)
	if none.Text(canary) != canary || &none.Bytes(in)[0] != &in[0] {
		t.Error("a nil Scrubber changes something")
	}
	clean := []byte("nothing to see here")
	if got := NewScrubber(New(canary)).Bytes(clean); &got[0] != &clean[0] {
		t.Error("Bytes copies what it did not change")
	}
}

// The streaming writer gives what Text gives, however the stream is cut.
func TestWriterAcrossChunks(t *testing.T) {
	s := NewScrubber(New("abcdefgh"), New("efghijkl"), New("aaaaaa"), New("longer value of a secret"))
	in := "x abcdefghijkl aaaaaaaaaaaaaaa longer value of a secret" + strings.Repeat("a", 40) + "aabcdefghabcdefgh. the end abcdefg"
	for _, form := range forms("longer value of a secret") {
		in += " " + form
	}
	in += " the end"
	want := s.Text(in)
	for size := 1; size < len(in)+1; size++ {
		var out bytes.Buffer
		w := s.Writer(&out)
		for i := 0; i < len(in); i += size {
			if _, err := w.Write([]byte(in[i:min(i+size, len(in))])); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Fatalf("chunks of %d: got %q, want %q", size, out.String(), want)
		}
	}
}

func TestScrubberConcurrent(t *testing.T) {
	s := NewScrubber()
	done := make(chan bool)
	for i := range 4 {
		go func() {
			for j := range 50 {
				v := fmt.Sprintf("value-%d-%d-secret", i, j)
				s.Add(New(v))
				if got := s.Text("<" + v + ">"); got != "<[redacted]>" {
					t.Errorf("got %q", got)
				}
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
}

// FuzzScrubber: nothing that was added stays, and the writer agrees with Text.
func FuzzScrubber(f *testing.F) {
	f.Add("abcdef", "abcdefghi", "xx abcdefghi abcdef", 3)
	f.Add("aaaaaa", "aaaaaaaaa", "aaaaaaaaaaaaaaaaaaaa", 1)
	f.Add("\xff\xfe\xfd\xfc\xfb\xfa", "é\x00\n\"\\<", "é\x00\n\"\\<", 2)
	f.Fuzz(func(t *testing.T, a, b, text string, chunk int) {
		if len(text) > 4096 || len(a) > 256 || len(b) > 256 {
			return
		}
		s := NewScrubber(New(a), New(b))
		text += a + "-" + b
		got := s.Text(text)
		for _, v := range []string{a, b} {
			if len(v) >= MinScrubbed && !overlapsMark(v) && strings.Contains(got, v) {
				t.Errorf("%q stays in %q", v, got)
			}
		}
		if string(s.Bytes([]byte(text))) != got {
			t.Error("Bytes and Text differ")
		}
		chunk = 1 + abs(chunk)%16
		var out bytes.Buffer
		w := s.Writer(&out)
		for i := 0; i < len(text); i += chunk {
			_, _ = w.Write([]byte(text[i:min(i+chunk, len(text))]))
		}
		_ = w.Close()
		if out.String() != got {
			t.Errorf("written %q, text %q", out.String(), got)
		}
	})
}

// overlapsMark reports whether v could arise anew from the mark and its neighbours.
func overlapsMark(v string) bool {
	return strings.ContainsAny(v, "[]") || strings.Contains(Redacted, v)
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

func BenchmarkScrubberText(b *testing.B) {
	s := NewScrubber()
	for i := range 40 {
		s.Add(New(fmt.Sprintf("%x-secret-%d", i*7919, i)))
	}
	text := strings.Repeat("The quick brown fox jumps over the lazy dog, 0123456789 times.\n", 16384)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s.Text(text)
	}
}
