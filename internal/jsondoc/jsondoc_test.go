package jsondoc

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// R-C3, X1: each usual mistake is found at its place and told in words that help.
func TestMistakes(t *testing.T) {
	tests := []struct{ in, place, text, hint string }{
		{"", "1:1", "empty", "write {}"},
		{" \n\t", "1:1", "empty", "write {}"},
		{"\xff\xfe{\x00", "1:1", "UTF-16", "UTF-8"},
		{"{", "1:2", "ends in the middle", "bracket"},
		{`{"a":"abc`, "1:10", "ends in the middle", "quote"},
		{`{"a":1,}`, "1:7", "comma before the closing", "remove the comma"},
		{"{\"a\":1 ,\n}", "1:8", "comma before the closing", "remove the comma"},
		{`{"a":[1,2,]}`, "1:10", "comma before the closing", "remove the comma"},
		{"{\n // c\n \"a\":1}", "2:2", "comments", "remove the comment"},
		{`{"a":1 /* x */}`, "1:8", "comments", "remove the comment"},
		{"# c\n{}", "1:1", "comments", "remove the comment"},
		{"{\"a\":1}\n// end", "2:1", "comments", "remove the comment"},
		{"\xef\xbb\xbf// c\n{}", "1:1", "comments", "remove the comment"},
		{`{'a':1}`, "1:2", "double quotes", "double quotes"},
		{`{“a”:1}`, "1:2", "typographic", "straight"},
		{`{a:1}`, "1:2", "no JSON value", "double quotes"},
		{`{"a":NaN}`, "1:6", "no JSON value", "double quotes"},
		{`{"a":1} x`, "1:9", "more text after", "remove it"},
		{`{"a":1}{}`, "1:8", "more text after", "remove it"},
		{`{"a":1,"b":{"x":1,"x":2}}`, "1:19", `"x" stands twice`, "keep one"},
		{"{\"a\":1,\n\n  \"\\u0061\":2}", "3:3", `"a" stands twice`, "keep one"},
		{"{\"\u202ea\":1,\"\u202ea\":2}", "1:9", `"\u202ea" stands twice`, "keep one"},
		{"{\"a\":\"\xff\"}", "1:7", "not UTF-8", "UTF-8"},
		{"{\"\xffb\":1}", "1:3", "not UTF-8", "UTF-8"},
		{"{\"a\":\"\xed\xa0\x80\"}", "1:7", "not UTF-8", "UTF-8"},
		{`{"a":"\ud800secret"}`, "1:7", "broken escape", `\\`},
		{`{"a":"C:\dir"}`, "1:9", "broken escape", `\\`},
		{"{\"a\":\"x\ny\"}", "1:8", "line break", `\n`},
		{"{\"a\":\"x\n// y\"}", "1:8", "line break", `\n`},
		{`{"a" 1}`, "1:6", "does not belong", ""},
		{`{"a":1 "b":2}`, "1:8", "comma or a colon is missing", "put it there"},
		{"{\"größe\": \"ü\",\n \"b\": \"ä\" \"c\"}", "2:11", "comma or a colon is missing", ""},
	}
	for _, tt := range tests {
		_, err := Parse([]byte(tt.in))
		e, ok := errors.AsType[*SyntaxError](err)
		if !ok {
			t.Errorf("%q: no syntax error: %v", tt.in, err)
			continue
		}
		if place := fmt.Sprintf("%d:%d", e.Line, e.Column); place != tt.place || !strings.Contains(e.Text, tt.text) || !strings.Contains(e.Hint, tt.hint) {
			t.Errorf("%q: %s %s [%s], want %s %s [%s]", tt.in, place, e.Text, e.Hint, tt.place, tt.text, tt.hint)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error quotes the file: %v", tt.in, err)
		}
	}
}

func TestTree(t *testing.T) {
	in := "\xef\xbb\xbf { \"a\" : [1, \"\\u0062\", {}], \"é\": {\"x\": null}, \"t\":true}\n"
	v, err := Parse([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(v.Get("a").Raw); got != `[1, "\u0062", {}]` {
		t.Errorf("raw %q", got)
	}
	if b := v.Get("a").Items[1]; b.Text != "b" || in[b.Start:b.End] != `"\u0062"` {
		t.Errorf("item %+v", b)
	}
	if x := v.Get("é").Get("x"); x.Kind != 'n' || x.TypeName() != "null" {
		t.Errorf("x %+v", x)
	}
	if m := v.Members[1]; m.Name != "é" || in[m.NameStart:m.NameStart+4] != "\"é\"" {
		t.Errorf("member %+v", m)
	}
	if v.Get("none") != nil || v.Get("none").Get("more") != nil || v.Get("t").Get("x") != nil {
		t.Error("something where nothing is")
	}
	if line, column := Position([]byte(in), v.Get("t").Start); line != 1 || column != 51 {
		t.Errorf("t stands at %d:%d", line, column)
	}
}

func TestDeepNesting(t *testing.T) {
	if _, err := Parse([]byte(strings.Repeat("[", 1<<20))); err == nil {
		t.Error("endless nesting is accepted")
	}
}

// FuzzParse: accepted is exactly what the strict decoder accepts, every value stands where it says, and errors have a place.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":[1,{"b":null}],"c":"d"}`, `[1,]`, "// x", "\xef\xbb\xbf{}", `{"a":1,"a":2}`, "{\"\\ud800\":1}", "{\"a\":\"\xff\"}", `1 2`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse(data)
		strict := jsontext.Value(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))).IsValid()
		if (err == nil) != strict {
			t.Fatalf("accepted %v, strictly %v: %v", err == nil, strict, err)
		}
		if err != nil {
			if e, ok := errors.AsType[*SyntaxError](err); !ok || e.Line < 1 || e.Column < 1 || e.Text == "" {
				t.Fatalf("no place or text: %#v", err)
			}
			return
		}
		check(t, data, v)
	})
}

// check compares a value with the bytes where it claims to stand.
func check(t *testing.T, data []byte, v *Value) {
	if !jsontext.Value(data[v.Start:v.End]).IsValid() || v.Raw.Kind() != v.Kind {
		t.Fatalf("no value at %d to %d", v.Start, v.End)
	}
	if v.Kind == '"' {
		var s string
		if err := json.Unmarshal(v.Raw, &s); err != nil || s != v.Text {
			t.Fatalf("text %q, want %q", v.Text, s)
		}
	}
	for _, m := range v.Members {
		if data[m.NameStart] != '"' {
			t.Fatalf("no name at %d", m.NameStart)
		}
		check(t, data, m.Value)
	}
	for _, item := range v.Items {
		check(t, data, item)
	}
}

// TestPlaces: every offset has the place that counting from the start gives it.
func TestPlaces(t *testing.T) {
	for name, in := range map[string]string{
		"empty":     "",
		"mark":      "\ufeff{}",
		"one line":  strings.Repeat(`"é": {}, `, 3*placeEvery/8),
		"lines":     strings.Repeat("\"long name\": 1,\r\n\"é\": \"€𝄞\"\n", placeEvery/10),
		"not UTF-8": strings.Repeat("\x80", 3*placeEvery) + "\nx",
		"to a byte": strings.Repeat("x", placeEvery) + "\n" + strings.Repeat("y", placeEvery-1),
	} {
		data := []byte(in)
		places := NewPlaces(data)
		for offset := 0; offset <= len(data)+1; offset += 1 + offset%7 {
			if offset < len(data) && !utf8.RuneStart(data[offset]) && utf8.Valid(data) {
				continue // in the middle of a character
			}
			wantLine, wantColumn := Position(data, offset)
			if line, column := places.Position(offset); line != wantLine || column != wantColumn {
				t.Fatalf("%s: offset %d is at %d:%d, not %d:%d", name, offset, line, column, wantLine, wantColumn)
			}
		}
		if most := len(data)/placeEvery + 1; len(places.known) > most {
			t.Errorf("%s: %d places kept", name, len(places.known))
		}
	}
}
