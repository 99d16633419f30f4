package main

import (
	"encoding/json"
	"strings"
)

// oddResults are results that a client has to bear, each as its tool's name and raw JSON: B40.
func oddResults() [][2]string {
	const (
		pixel = `iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==`
		svg   = `PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=`
		text  = `{"type":"text","text":"fine"}`
	)
	image := `{"type":"image","data":"` + pixel + `","mimeType":"image/png"}`
	return [][2]string{
		{"null", `null`}, {"array", `[]`}, {"string", `"done"`}, {"number", `42`}, {"empty_object", `{}`}, {"content_null", `{"content":null}`},
		{"content_empty", `{"content":[]}`}, {"content_text", `{"content":"done"}`}, {"content_object", `{"content":` + text + `}`},
		{"block_null", `{"content":[null,` + text + `,5,"x",[]]}`}, {"block_no_type", `{"content":[{"text":"no type"}]}`}, {"text_missing", `{"content":[{"type":"text"}]}`},
		{"text_number", `{"content":[{"type":"text","text":7}]}`}, {"text_empty", `{"content":[{"type":"text","text":""}]}`},
		{"structured_only", `{"structuredContent":{"temperature":21,"unit":"C"}}`}, {"structured_empty_content", `{"content":[],"structuredContent":{"a":1}}`},
		{"structured_both", `{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}`}, {"structured_array", `{"content":[],"structuredContent":[1,2]}`},
		{"structured_null", `{"content":[` + text + `],"structuredContent":null}`}, {"structured_media", `{"content":[` + image + `],"structuredContent":{"image":"` + pixel + `"}}`},
		{"error_text", `{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"isError":true}`}, {"error_empty", `{"content":[],"isError":true}`},
		{"error_string", `{"content":[` + text + `],"isError":"true"}`}, {"error_structured", `{"structuredContent":{"why":"no"},"isError":true}`},
		{"image", `{"content":[` + image + `]}`}, {"image_svg", `{"content":[{"type":"image","data":"` + svg + `","mimeType":"image/svg+xml"}]}`},
		{"image_broken", `{"content":[{"type":"image","data":"@@not base64@@","mimeType":"image/png"}]}`}, {"image_no_mime", `{"content":[{"type":"image","data":"` + pixel + `"}]}`},
		{"image_no_data", `{"content":[{"type":"image","mimeType":"image/png"}]}`}, {"audio", `{"content":[{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}]}`},
		{"order", `{"content":[{"type":"text","text":"before"},` + image + `,{"type":"text","text":"after"}]}`},
		{"link", `{"content":[{"type":"resource_link","uri":"file:///etc/passwd","name":"passwd","description":"a\u001b[31mlink","mimeType":"text/plain","size":12}]}`},
		{"link_no_uri", `{"content":[{"type":"resource_link"}]}`},
		{"resource_text", `{"content":[{"type":"resource","resource":{"uri":"x://y","mimeType":"text/plain","text":"inside"}}]}`},
		{"resource_blob", `{"content":[{"type":"resource","resource":{"uri":"x://y","mimeType":"application/zip","blob":"UEsDBA=="}}]}`},
		{"resource_null", `{"content":[{"type":"resource","resource":null}]}`}, {"unknown_type", `{"content":[{"type":"hologram","data":"abc","depth":3},` + text + `]}`},
		{"type_number", `{"content":[{"type":5,"text":"x"}]}`}, {"annotated", `{"content":[{"type":"text","text":"fine","annotations":{"audience":["user"],"priority":2},"_meta":{}}]}`},
		{"control", `{"content":[{"type":"text","text":"\u001b[2J\u001b]0;title\u0007\u202eevil\u200b\r\nnext\u0000"}]}`},
		{"emoji", `{"content":[{"type":"text","text":"` + strings.Repeat("😀", 60<<10) + `"}]}`},
		{"huge_text", `{"content":[{"type":"text","text":"` + strings.Repeat("line of text\\n", 100<<10) + `"}]}`},
		{"many_blocks", `{"content":[` + strings.TrimSuffix(strings.Repeat(text+",", 5000), ",") + `]}`},
		{"many_images", `{"content":[` + strings.TrimSuffix(strings.Repeat(image+",", 200), ",") + `]}`},
		{"dup_names", `{"content":[],"content":[` + text + `]}`}, {"extra", `{"content":[` + text + `],"toolResult":{"x":1},"_meta":{"progressToken":1},"nextCursor":"x"}`},
		{"deep", `{"content":[],"structuredContent":{"d":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}}`},
	}
}

// resultOdd has a tool for each odd result, and one that promises structured content and gives none.
func resultOdd(s *server) {
	s.tools = nil
	for _, p := range oddResults() {
		s.tools = append(s.tools, define(p[0], "Answers oddly.", ``))
		s.call[p[0]] = func(m message, _ json.RawMessage) { s.result(m, p[1]) }
	}
	s.tools = append(s.tools, `{"name":"promise","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`)
	s.call["promise"] = func(m message, _ json.RawMessage) { s.text(m, "no structure") }
}
