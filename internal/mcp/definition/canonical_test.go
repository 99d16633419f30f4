package definition

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

const (
	fullStdio = `{"type":"stdio","command":"c","args":["a","b"],"env":{"A":"1","B":"${X:-y}"},"timeout":30}`
	fullHTTP  = `{"type":"http","url":"https://h/p?q=1","headers":{"X-A":"1","X-B":"${T}"},"timeout":60,"oauth":{"client_id":"i","scopes":["r","w"],"authorization_server":"https://as"}}`
)

// R-A4, S1: edits that change nothing that is meant.
func TestNeutralEdits(t *testing.T) {
	groups := [][]string{
		{
			fullStdio,
			`{"command":"c","args":["a","b"],"env":{"A":"1","B":"${X:-y}"}}`,
			`{"timeout":30,"env":{"B":"${X:-y}","A":"1"},"args":["a","b"],"command":"c"}`,
			"{\n\t\"command\" : \"\\u0063\",\r\n \"args\":[ \"a\" , \"b\" ],\"env\":{\"A\":\"1\",\"B\":\"${X:-y}\"}, \"enabled\":true}",
			`{"command":"c","args":["a","b"],"env":{"A":"1","B":"${X:-y}"},"enabled":"whatever","unknown":{"x":1}}`,
		},
		{
			`{"command":"c"}`, `{"command":"c","args":[]}`, `{"command":"c","env":{}}`, `{"type":"stdio","command":"c","args":[],"env":{},"timeout":30,"enabled":false}`,
		},
		{
			fullHTTP,
			`{"oauth":{"authorization_server":"https://as","scopes":["r","w"],"client_id":"i"},"timeout":60,"headers":{"X-B":"${T}","X-A":"1"},"url":"https:\/\/h\/p?q=1","type":"http"}`,
		},
		{
			`{"type":"http","url":"u"}`, `{"type":"http","url":"u","headers":{},"timeout":30}`,
		},
		{
			`{"type":"http","url":"u","oauth":{}}`, `{"type":"http","url":"u","oauth":{"scopes":[]}}`, `{"type":"http","url":"u","oauth":{"later":1}}`,
		},
	}
	for _, g := range groups {
		first := one(t, g[0]).Canonical()
		for _, other := range g[1:] {
			if !bytes.Equal(first, one(t, other).Canonical()) {
				t.Errorf("%s differs from %s", other, g[0])
			}
		}
	}
}

// R-A4, S1: every significant edit gives an encoding of its own.
func TestSignificantEdits(t *testing.T) {
	entries := []string{
		fullStdio, fullHTTP,
		strings.Replace(fullStdio, `"c"`, `"d"`, 1),
		strings.Replace(fullStdio, `"c"`, `"c "`, 1),
		strings.Replace(fullStdio, `["a","b"]`, `["b","a"]`, 1),
		strings.Replace(fullStdio, `["a","b"]`, `["ab"]`, 1),
		strings.Replace(fullStdio, `["a","b"]`, `["a","b",""]`, 1),
		strings.Replace(fullStdio, `["a","b"]`, `["","a","b"]`, 1),
		strings.Replace(fullStdio, `["a","b"]`, `["a b"]`, 1),
		strings.Replace(fullStdio, `"A":"1"`, `"A":"2"`, 1),
		strings.Replace(fullStdio, `"A":"1"`, `"a":"1"`, 1),
		strings.Replace(fullStdio, `"A":"1"`, `"A":""`, 1),
		strings.Replace(fullStdio, `"A":"1",`, ``, 1),
		strings.Replace(fullStdio, `${X:-y}`, `${Z:-y}`, 1),
		strings.Replace(fullStdio, `${X:-y}`, `${X:-z}`, 1),
		strings.Replace(fullStdio, `${X:-y}`, `${X:-}`, 1),
		strings.Replace(fullStdio, `${X:-y}`, `${X}`, 1),
		strings.Replace(fullHTTP, `/p?`, `/q?`, 1),
		strings.Replace(fullHTTP, `q=1`, `q=2`, 1),
		strings.Replace(fullHTTP, `?q=1`, ``, 1),
		strings.Replace(fullHTTP, `q=1`, `q=1#f`, 1),
		strings.Replace(fullHTTP, `https://h`, `http://h`, 1),
		strings.Replace(fullHTTP, `"X-A":"1"`, `"X-A":"2"`, 1),
		strings.Replace(fullHTTP, `"X-A":"1"`, `"X-C":"1"`, 1),
		strings.Replace(fullHTTP, `"X-A":"1"`, `"x-a":"1"`, 1),
		strings.Replace(fullHTTP, `"X-A":"1",`, ``, 1),
		strings.Replace(fullHTTP, `"i"`, `"j"`, 1),
		strings.Replace(fullHTTP, `["r","w"]`, `["w","r"]`, 1),
		strings.Replace(fullHTTP, `["r","w"]`, `["r w"]`, 1),
		strings.Replace(fullHTTP, `["r","w"]`, `[]`, 1),
		strings.Replace(fullHTTP, `https://as`, `https://as/`, 1),
		strings.Replace(fullHTTP, `,"authorization_server":"https://as"`, ``, 1),
		`{"type":"http","url":"https://h/p?q=1"}`,
		`{"type":"http","url":"https://h/p?q=1","oauth":{}}`,
	}
	for _, timeout := range []string{"0", "-1", "1", "29", "31", "300", "301", "30.0", "3e1", "30.5", "0.5", "1e9", "1e400", "-0", "99999999999999999999", "2147483648"} {
		entries = append(entries, strings.Replace(fullStdio, `"timeout":30`, `"timeout":`+timeout, 1))
	}
	seen := map[string]string{}
	for _, e := range entries {
		key := string(one(t, e).Canonical())
		if other, dup := seen[key]; dup {
			t.Errorf("%s and %s share an encoding", e, other)
		}
		seen[key] = e
	}
}

// R-A4: random pairs of definitions share an encoding exactly when they say the same.
func TestCanonicalRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := func() string { return []string{"", "a", "b", "ab", "\x00", "1", "stdio"}[rng.IntN(7)] }
	texts := func() (out []string) {
		for range rng.IntN(3) {
			out = append(out, text())
		}
		return out
	}
	pairs := func() (out []Pair) {
		for i := range rng.IntN(3) {
			out = append(out, Pair{fmt.Sprint(i) + text(), text()})
		}
		return out
	}
	meaning := map[string]string{}
	for range 20000 {
		s := Server{Type: Stdio, Command: text(), Args: texts(), Env: pairs(), Timeout: rng.IntN(3)}
		if rng.IntN(2) == 0 {
			s = Server{Type: HTTP, URL: text(), Headers: pairs(), Timeout: rng.IntN(3)}
			if rng.IntN(2) == 0 {
				s.OAuth = &OAuth{text(), texts(), text()}
			}
		}
		said := fmt.Sprintf("%q %q %q %q %d", s.Type, s.Command, s.Args, s.URL, s.Timeout)
		for _, p := range append(append([]Pair{}, s.Env...), s.Headers...) {
			said += fmt.Sprintf(" %q=%q", p.Name, p.Value)
		}
		if s.OAuth != nil {
			said += fmt.Sprintf(" %q %q %q", s.OAuth.ClientID, s.OAuth.Scopes, s.OAuth.AuthorizationServer)
		}
		key := string(s.Canonical())
		if other, ok := meaning[key]; ok && other != said {
			t.Fatalf("%s and %s share an encoding", said, other)
		}
		meaning[key] = said
	}
	if len(meaning) < 1000 {
		t.Errorf("only %d different definitions were tried", len(meaning))
	}
}

// A changed encoding would void every approval: whoever changes it must mean it.
func TestCanonicalIsStable(t *testing.T) {
	for entry, want := range map[string]string{
		fullStdio: "4dae3069d2ecc0edbd120174f96f3d38",
		fullHTTP:  "740bd2e84184104284f0341a9951d36b",
	} {
		sum := sha256.Sum256(one(t, entry).Canonical())
		if got := hex.EncodeToString(sum[:16]); got != want {
			t.Errorf("the encoding of %s is now %s", entry, got)
		}
	}
}
