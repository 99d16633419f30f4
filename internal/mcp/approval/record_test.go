package approval

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"magi-code/internal/jsondoc"
	"magi-code/internal/mcp/definition"
)

// R-A2: the record is exactly as specified, and tells nothing.
func TestRecordForm(t *testing.T) {
	s := stage(t, `{"command":"c4nary-command"}`)
	s.write(s.store.settingsPath(), "{\n  \"provider\": \"x\",\n  \"later\":[1,  2]\n}\n")
	v := s.approve()
	want := "{\n  \"provider\": \"x\",\n  \"later\":[1,  2],\n  \"capabilities\": {\n    \"mcp_approvals\": {\n      " +
		fmt.Sprintf("%q", s.file) + ": {\n        \"s\": {\"version\":1,\"digest\":\"" + v.Fingerprint + "\"}\n      }\n    }\n  }\n}\n"
	if got := s.settings(); got != want {
		t.Errorf("settings\n%s\nwant\n%s", got, want)
	}
	if err := s.store.Revoke(t.Context(), s.file, "s"); err != nil {
		t.Fatal(err)
	}
	if got := s.settings(); !strings.Contains(got, `"s": false`) {
		t.Errorf("revoked: %s", got)
	}
}

// R-A3, S8: malformed records of every kind authorize nothing.
func TestMalformedRecords(t *testing.T) {
	s := stage(t, `{"command":"c"}`)
	digest := s.approve().Fingerprint
	s.record(`{"version":1,"digest":"` + digest + `"}`)
	s.want("the control", IsApproved)
	tests := map[string]State{
		`null`: Invalid, `1`: Invalid, `0`: Invalid, `"x"`: Invalid, `""`: Invalid, `[]`: Invalid, `{}`: Invalid,
		`true`: RenewalRequired, `false`: Revoked,
		`"` + digest + `"`:                                                               Invalid,
		`["` + digest + `"]`:                                                             Invalid,
		`{"version":1}`:                                                                  Invalid,
		`{"version":1,"x":true}`:                                                         Invalid,
		`{"digest":"` + digest + `"}`:                                                    Invalid,
		`{"version":"1","digest":"` + digest + `"}`:                                      Invalid,
		`{"version":null,"digest":"` + digest + `"}`:                                     Invalid,
		`{"version":true,"digest":"` + digest + `"}`:                                     Invalid,
		`{"version":[1],"digest":"` + digest + `"}`:                                      Invalid,
		`{"version":1.0,"digest":"` + digest + `"}`:                                      Invalid,
		`{"version":1e0,"digest":"` + digest + `"}`:                                      Invalid,
		`{"version":2,"digest":"` + digest + `"}`:                                        RenewalRequired,
		`{"version":0,"digest":"` + digest + `"}`:                                        RenewalRequired,
		`{"version":-1,"digest":"` + digest + `"}`:                                       RenewalRequired,
		`{"version":2}`:                                                                  RenewalRequired,
		`{"version":18446744073709551617,"digest":"` + digest + `"}`:                     RenewalRequired,
		`{"version":1,"digest":"` + digest[1:] + `"}`:                                    Invalid,
		`{"version":1,"digest":"` + digest + `0"}`:                                       Invalid,
		`{"version":1,"digest":""}`:                                                      Invalid,
		`{"version":1,"digest":"` + strings.ToUpper(digest[:63]) + `F"}`:                 Invalid,
		`{"version":1,"digest":"` + digest[:63] + `g"}`:                                  Invalid,
		`{"version":1,"digest":"` + digest[:63] + ` "}`:                                  Invalid,
		`{"version":1,"digest":" ` + digest[:63] + `"}`:                                  Invalid,
		`{"version":1,"digest":null}`:                                                    Invalid,
		`{"version":1,"digest":1}`:                                                       Invalid,
		`{"version":1,"digest":true}`:                                                    Invalid,
		`{"version":1,"digest":["` + digest + `"]}`:                                      Invalid,
		`{"version":1,"Digest":"` + digest + `"}`:                                        Invalid,
		`{"Version":1,"digest":"` + digest + `"}`:                                        Invalid,
		`{"version":1,"digest":"` + digest + `","x":1}`:                                  Invalid,
		`{"version":1,"digest":"` + flip(digest) + `"}`:                                  Changed,
		`{"version":1,"digest":"` + strings.Repeat("0", 64) + `"}`:                       Changed,
		`{"digest":"` + digest + `","version":1}`:                                        IsApproved,
		`{"version":1,"digest":"\u00` + fmt.Sprintf("%x", digest[0]) + digest[1:] + `"}`: IsApproved, // the same text
	}
	for raw, want := range tests {
		s.record(raw)
		s.want(raw, want)
	}
	for _, text := range []string{
		`{"capabilities":{"mcp_approvals":%s}}`, `{"capabilities":{"mcp_approvals":{"` + filepath.ToSlash(s.file) + `":%s}}}`,
	} {
		for _, raw := range []string{"true", "null", "1", `"x"`, "[]"} {
			s.write(s.store.settingsPath(), fmt.Sprintf(text, raw))
			if got := s.state(); got == IsApproved || got == NeverApproved || got == Revoked {
				t.Errorf("%s with %s: %v", text, raw, got)
			}
		}
	}
	for _, text := range []string{`{"capabilities":true}`, `{}`, ``, `{"Capabilities":{"mcp_approvals":{"` + s.file + `":{"s":{"version":1,"digest":"` + digest + `"}}}}}`} {
		s.write(s.store.settingsPath(), text)
		s.want(text, NeverApproved)
	}
	dup := fmt.Sprintf(`{"capabilities":{"mcp_approvals":{%q:{"s":false,"s":{"version":1,"digest":"%s"}}}}}`, s.file, digest)
	s.write(s.store.settingsPath(), dup)
	if _, err := s.store.Check(s.servers()); err == nil {
		t.Error("duplicate records are read")
	}
}

// flip changes one digit.
func flip(digest string) string {
	if digest[0] == '0' {
		return "1" + digest[1:]
	}
	return "0" + digest[1:]
}

// FuzzRecord: no record but the right one authorizes.
func FuzzRecord(f *testing.F) {
	key := bytes.Repeat([]byte("k"), keyBytes)
	d := definition.Server{Name: "s", Source: "/p", Type: definition.Stdio, Command: "c", Timeout: 30}
	right := digest(key, d)
	for _, raw := range []string{"true", "false", "null", `{"version":1,"digest":"` + right + `"}`, `{"version":2}`, `{"digest":[],"version":1}`} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		v, err := jsondoc.Parse([]byte(raw))
		if err != nil {
			return
		}
		got := judge(v, key, d)
		if got == IsApproved && !(v.Get("digest").Text == right && string(v.Get("version").Raw) == "1" && len(v.Members) == 2) {
			t.Fatalf("%s authorizes", raw)
		}
		if got == NeverApproved {
			t.Fatalf("%s counts as nothing", raw)
		}
		if judge(v, nil, d) == IsApproved {
			t.Fatalf("%s authorizes without a key", raw)
		}
	})
}
