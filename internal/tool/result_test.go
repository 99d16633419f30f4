package tool

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

var png = []byte("\x89PNG\r\n\x1a\nrest")

// R-P7, B40: nothing is dropped silently, binary is never pasted.
func TestPlain(t *testing.T) {
	for _, c := range []struct {
		name string
		r    Result
		want string
	}{
		{"empty", Result{}, ""},
		{"texts", Result{Content: []Content{{Kind: Text, Text: "a"}, {Kind: Text}, {Kind: Text, Text: "b\n"}}}, "a\nb\n"},
		{"image", Result{Content: []Content{{Kind: Text, Text: "see"}, {Kind: Image, MIME: "image/png", Data: png}}}, "see\n[image image/png, 12 bytes]"},
		{"image without type", Result{Content: []Content{{Kind: Image, Data: []byte("1")}}}, "[image, 1 bytes]"},
		{"audio", Result{Content: []Content{{Kind: Audio, MIME: "audio/wav", Data: []byte("abc")}}}, "[audio audio/wav, 3 bytes]"},
		{"resource text", Result{Content: []Content{{Kind: Resource, URI: "file:///a", Text: "inside"}}}, "[resource file:///a]\ninside"},
		{"resource binary", Result{Content: []Content{{Kind: Resource, URI: "file:///a", MIME: "a/b", Data: []byte("xy")}}}, "[resource a/b file:///a, 2 bytes]"},
		{"resource empty", Result{Content: []Content{{Kind: Resource, URI: "file:///a"}}}, "[resource file:///a, 0 bytes]"},
		{"link", Result{Content: []Content{{Kind: Link, URI: "https://x/y", Name: "the y"}}}, "[link https://x/y (the y)]"},
		{"link described", Result{Content: []Content{{Kind: Link, URI: "u", Name: "u", Text: "what it is"}}}, "[link u: what it is]"},
		{"unknown", Result{Content: []Content{{Kind: Unknown, Text: "[hologram, 9 bytes]"}}}, "[hologram, 9 bytes]"},
		{"kind of nobody", Result{Content: []Content{{Kind: "odd", Text: "x"}}}, "[content of unknown kind]"},
		{"structured alone", Result{Structured: jsontext.Value("{ \"a\" : [1, 2] }")}, `{"a":[1,2]}`},
		{"structured beside text", Result{Content: []Content{{Kind: Text, Text: "x"}}, Structured: jsontext.Value(`{"a":1}`)}, "x"},
		{"structured beside blank text", Result{Content: []Content{{Kind: Text, Text: " \n"}}, Structured: jsontext.Value(`{"a":1}`)}, " \n\n{\"a\":1}"},
		{"structured beside an image", Result{Content: []Content{{Kind: Image, MIME: "image/png", Data: png}}, Structured: jsontext.Value(`{"a":1}`)}, "[image image/png, 12 bytes]\n{\"a\":1}"},
		{"structured null", Result{Structured: jsontext.Value(`null`)}, ""},
		{"structured broken", Result{Structured: jsontext.Value(`{`)}, "[structured content that is not valid JSON]"},
		{"error keeps its texts", Result{IsError: true, Content: []Content{{Kind: Text, Text: "a"}, {Kind: Text, Text: "b"}}}, "a\nb"},
	} {
		if got := c.r.Plain(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestForModel(t *testing.T) {
	r := Result{Content: []Content{
		{Kind: Text, Text: "a"}, {Kind: Text, Text: "b"},
		{Kind: Image, MIME: "image/jpeg", Data: png}, // the bytes decide
		{Kind: Image, MIME: "image/svg+xml", Data: []byte("<svg/>")},
		{Kind: Link, URI: "u"},
	}}
	got := r.ForModel(0)
	if len(got) != 3 || got[0].Text != "a\nb" || got[1].MIME != "image/png" || got[2].Text != "[image image/svg+xml, 6 bytes]\n[link u]" {
		t.Errorf("%+v", got)
	}
	if got := (Result{}).ForModel(10); len(got) != 1 || got[0].Text != "[no content]" {
		t.Errorf("empty: %+v", got)
	}
	if got := ErrorResult("").ForModel(100); len(got) != 1 || !strings.Contains(got[0].Text, "failed") {
		t.Errorf("empty failure: %+v", got)
	}
	if got := TextResult("a\x00b").ForModel(0); got[0].Text != "a\uFFFDb" { // B6
		t.Errorf("NUL: %q", got[0].Text)
	}
	big := Result{Content: []Content{{Kind: Image, Data: append([]byte("\xff\xd8\xff"), make([]byte, MaxImage)...)}}}
	if got := big.ForModel(0); got[0].Kind != Text {
		t.Error("an image beyond the bound went out")
	}
	var many Result
	for range MaxImages + 3 {
		many.Content = append(many.Content, Content{Kind: Image, Data: png})
	}
	if got := many.ForModel(0); len(got) != MaxImages+1 || strings.Count(got[MaxImages].Text, "[image") != 3 {
		t.Errorf("%d parts", len(got))
	}
}

// R-P7: the cut keeps head and tail, says so, and the bound holds over all parts.
func TestForModelCut(t *testing.T) {
	long := "HEAD" + strings.Repeat("ä", 5000) + "TAIL"
	sep := Content{Kind: Image, Data: png}
	for _, c := range []struct {
		name  string
		parts []Content
		limit int
	}{
		{"one", []Content{{Kind: Text, Text: long}}, 1000},
		{"two long", []Content{{Kind: Text, Text: long}, sep, {Kind: Text, Text: long}}, 1001},
		{"short ones stay", []Content{{Kind: Text, Text: "short"}, sep, {Kind: Text, Text: long}, sep, {Kind: Text, Text: "end"}}, 1000},
		{"tiny", []Content{{Kind: Text, Text: long}}, 7},
	} {
		total, whole := 0, 0
		for _, p := range (Result{Content: c.parts}).ForModel(c.limit) {
			if p.Kind != Text {
				continue
			}
			total += len(p.Text)
			if !utf8.ValidString(p.Text) {
				t.Errorf("%s: cut inside a rune", c.name)
			}
			switch {
			case p.Text == "short" || p.Text == "end":
				whole++
			case c.limit > 100 && (!strings.HasPrefix(p.Text, "HEAD") || !strings.HasSuffix(p.Text, "TAIL") || !strings.Contains(p.Text, "omitted")):
				t.Errorf("%s: %.60q...", c.name, p.Text)
			}
		}
		if total > c.limit || (c.limit > 100 && total < c.limit*8/10) {
			t.Errorf("%s: %d bytes of %d", c.name, total, c.limit)
		}
		if c.name == "short ones stay" && whole != 2 {
			t.Errorf("%s: a short text was cut", c.name)
		}
	}
}
