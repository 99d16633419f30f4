package provider

import (
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestInput(t *testing.T) {
	for written, want := range map[string]string{
		``:                              `{}`,
		" \n":                           `{}`,
		`{"a":1}`:                       `{"a":1}`,
		`{"a":1`:                        `"{\"a\":1"`,
		`{"a":1,"a":2}`:                 `"{\"a\":1,\"a\":2}"`, // S6
		"\xff":                          `"` + "\uFFFD" + `"`,
		`{"n":12345678901234567890123}`: `{"n":12345678901234567890123}`,
	} {
		if got := string(Input(written)); got != want {
			t.Errorf("%q: got %s, want %s", written, got, want)
		}
	}
}

func TestInputObject(t *testing.T) {
	for in, want := range map[string]string{
		``:          `{}`,
		`{"a":1}`:   `{"a":1}`,
		`"{\"a\":"`: `{"invalid_input":"{\"a\":"}`,
		`[1]`:       `{"invalid_input":"[1]"}`,
	} {
		if got := string(InputObject(jsontext.Value(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestCallID(t *testing.T) {
	for _, same := range []string{"call_1", "toolu_01-x", strings.Repeat("a", 64)} {
		if got := CallID(same); got != same {
			t.Errorf("%s became %s", same, got)
		}
	}
	valid := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	seen := map[string]string{}
	for _, id := range []string{"", "functions.read:0", "functions.read:1", "functions_read:0", "é", strings.Repeat("a", 65), strings.Repeat("a", 66)} {
		got := CallID(id)
		if !valid.MatchString(got) || got != CallID(id) || seen[got] != "" {
			t.Errorf("%q became %q (also of %q)", id, got, seen[got])
		}
		seen[got] = id + " "
	}
}

func FuzzInput(f *testing.F) {
	for _, s := range []string{`{"a":`, `"x"`, "\xff", `{"a":"\ud800"}`, "[]", "nul"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := Input(s)
		if !v.IsValid() {
			t.Fatalf("%q is not valid JSON", v)
		}
		if o := InputObject(v); !o.IsValid() || o.Kind() != '{' {
			t.Fatalf("%q is no object", o)
		}
		if s != "" && !validCallID(CallID(s)) {
			t.Fatalf("id %q", CallID(s))
		}
	})
}

// validCallID is what the strictest service takes.
func validCallID(id string) bool {
	return id != "" && len(id) <= maxCallID && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

func TestCount(t *testing.T) {
	var u struct{ A, B, C Count }
	if err := Decode([]byte(`{"A":12.0,"B":null,"C":-3}`), &u); err != nil || u.A.Int() != 12 || u.B.Int() != 0 || u.C.Int() != 0 {
		t.Errorf("%+v %v", u, err)
	}
	if got := Count(1e300).Int(); got != 0 {
		t.Errorf("nonsense counts as %d", got)
	}
}
