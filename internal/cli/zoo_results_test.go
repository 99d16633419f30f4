package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestZooResults: every odd result reaches the model as text that says what there was (B40, R-P7), an error as an error, all in one
// turn that no result ends.
func TestZooResults(t *testing.T) {
	const notObject = "[result that is no object, "
	want := map[string]string{
		"null": notObject + "4 bytes]", "array": notObject + "2 bytes]", "string": notObject + "6 bytes]", "number": notObject + "2 bytes]",
		"empty_object": "", "content_null": "", "content_empty": "", "content_text": "done", "content_object": "fine",
		"block_null":    "[content that is no object, 4 bytes]\nfine\n[content that is no object, 1 bytes]\nx\n[content that is no object, 2 bytes]",
		"block_no_type": "no type", "text_missing": "", "text_number": "7", "text_empty": "",
		"structured_only": `{"temperature":21,"unit":"C"}`, "structured_empty_content": `{"a":1}`, "structured_both": `{"a":1}`, "structured_array": "[1,2]",
		"structured_null": "fine", "structured_media": "[image image/png, 70 bytes]\n" + `{"image":"[shown above]"}`,
		"error_text": "one\ntwo", "error_empty": "", "error_string": "fine", "error_structured": `{"why":"no"}`,
		"image": "[image image/png, 70 bytes]", "image_svg": "[image image/svg+xml, 41 bytes]", "image_broken": "[image image/png with broken base64, 14 bytes]",
		"image_no_mime": "[image, 70 bytes]", "image_no_data": "[image image/png without data]", "audio": "[audio audio/wav, 4 bytes]",
		"order": "before\n[image image/png, 70 bytes]\nafter", "link": "[link file:///etc/passwd (passwd): alink]", "link_no_uri": "[link ]",
		"resource_text": "[resource x://y]\ninside", "resource_blob": "[resource application/zip x://y, 4 bytes]", "resource_null": "[resource without contents, 35 bytes]",
		"unknown_type": "[content of unknown type \"hologram\", 42 bytes]\nfine", "type_number": "x", "annotated": "fine", "control": "\x1b[2J\x1b]0;title\a\u202eevil\u200b\r\nnext\x00", // as it is; the line that it came in is clean
		"extra": "fine", "promise": "no structure",
		"dup_names": `server "z": call: invalid message: a name occurs twice in one object`,
	}
	failing := map[string]bool{"error_text": true, "error_empty": true, "error_string": true, "error_structured": true, "dup_names": true}
	long := map[string]string{"emoji": "😀", "huge_text": "line of text\n", "many_blocks": "fine\n", "many_images": "[image image/png, 70 bytes]", "deep": `{"d":[[`}
	p := newPlace(t)
	p.define(t, map[string]map[string]any{"z": {"args": []string{"result-odd"}}})
	p.approve(t, "z")
	var script strings.Builder
	for name := range want {
		script.WriteString("call mcp__z__" + name + " {}\n")
	}
	for name := range long {
		script.WriteString("call mcp__z__" + name + " {}\n")
	}
	o := p.runWith(t, script.String(), "run", "--provider", "offline", "--no-session", "--json", "--allow", "*", "-")
	if o.code != 0 {
		t.Fatal(o)
	}
	seen := 0
	for line := range strings.Lines(o.out) {
		var e struct {
			Type, Text string
			IsError    bool
			Call       struct{ Remote string }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.Type != "result" {
			continue
		}
		seen++
		if odd := hidden(line); odd != "" {
			t.Errorf("a line holds %+q", odd)
		}
		name := e.Call.Remote
		if start, ok := long[name]; ok {
			if !strings.HasPrefix(e.Text, start) || len(e.Text) > 110<<10 || strings.ContainsRune(e.Text, '\uFFFD') {
				t.Errorf("%s: %d bytes: %.100q", name, len(e.Text), e.Text)
			}
			continue
		}
		if text, ok := want[name]; !ok || strings.TrimSpace(e.Text) != text || e.IsError != failing[name] {
			t.Errorf("%s: error %v: %q, not %q", name, e.IsError, e.Text, text)
		}
	}
	if seen != len(want)+len(long) {
		t.Errorf("%d results of %d", seen, len(want)+len(long))
	}
}
