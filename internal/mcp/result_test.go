package mcp

import (
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/secret"
	"magi-code/internal/tool"
	"magi-code/internal/untrusted"
)

// testOnlyUpdate makes TestResultGolden write what it compares with.
var testOnlyUpdate = flag.Bool("update", false, "write golden files")

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// R-P7, B40: each shape of result as a model and a plain terminal see it. The golden file reads as documentation.
func TestResultGolden(t *testing.T) {
	var b strings.Builder
	for _, c := range []struct{ name, in string }{
		{"text", `{"content":[{"type":"text","text":"hello"}]}`},
		{"several texts", `{"content":[{"type":"text","text":"one"},{"type":"text","text":"two\n"}]}`},
		{"content absent", `{}`},
		{"content null", `{"content":null}`},
		{"content empty, structured", `{"content":[],"structuredContent":{"temperature":22.5,"conditions":"dry"}}`},
		{"content absent, structured", `{"structuredContent":{"b":1,"a":[1, 2]}}`},
		{"text and structured", `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`},
		{"image and structured that repeats it", `{"content":[{"type":"image","data":"` + pixel + `","mimeType":"image/png"}],"structuredContent":{"image":"` + pixel + `","n":1}}`},
		{"structured that is no object", `{"structuredContent":[1,2]}`},
		{"structured null", `{"content":[{"type":"text","text":"x"}],"structuredContent":null}`},
		{"image", `{"content":[{"type":"image","data":"` + pixel + `","mimeType":"image/png"}]}`},
		{"image as data URL", `{"content":[{"type":"image","data":"data:image/png;base64,` + pixel + `"}]}`},
		{"image of the wrong type", `{"content":[{"type":"image","data":"` + pixel + `","mimeType":"image/jpeg"}]}`},
		{"svg image", `{"content":[{"type":"image","data":"PHN2Zy8+","mimeType":"image/svg+xml"}]}`},
		{"image with broken base64", `{"content":[{"type":"image","data":"!!!","mimeType":"image/png"}]}`},
		{"image without padding, other alphabet, line breaks", `{"content":[{"type":"image","data":"_-\nA","mimeType":"image/x"}]}`},
		{"image without data", `{"content":[{"type":"image","mimeType":"image/png"}]}`},
		{"audio", `{"content":[{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}]}`},
		{"resource text", `{"content":[{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"inside"}}]}`},
		{"resource blob", `{"content":[{"type":"resource","resource":{"uri":"file:///a.bin","mimeType":"application/x","blob":"AAEC"}}]}`},
		{"resource without contents", `{"content":[{"type":"resource","resource":{"uri":"file:///a"}},{"type":"resource"}]}`},
		{"resource link", `{"content":[{"type":"resource_link","uri":"file:///b","name":"b","title":"The B","description":"what it is","mimeType":"text/plain"}]}`},
		{"unknown type", `{"content":[{"type":"hologram","data":"xyz"},{"type":"text","text":"after"}]}`},
		{"type with control characters", `{"content":[{"type":"\u001b[31mred\u202e"}]}`},
		{"no type", `{"content":[{"text":"bare"},{"x":1}]}`},
		{"parts that are no objects", `{"content":["plain",7,null,[1]]}`},
		{"text that is no text", `{"content":[{"type":"text","text":{"a":1}},{"type":"text","text":null},{"type":"text"}]}`},
		{"one part without its array", `{"content":{"type":"text","text":"alone"}}`},
		{"content is text", `{"content":"alone"}`},
		{"error of several texts", `{"isError":true,"content":[{"type":"text","text":"first"},{"type":"text","text":"second"}]}`},
		{"error in quotes", `{"isError":"true","content":[]}`},
		{"older shape", `{"toolResult":{"a":1}}`},
		{"only _meta", `{"_meta":{"a":1}}`},
		{"escaped names", `{"\u0063ontent":[{"\u0074ype":"text","te\u0078t":"x"}],"is\u0045rror":true}`},
		{"no object", `[1,2]`},
		{"null", `null`},
		{"surrogates and NUL", `{"content":[{"type":"text","text":"a\u0000b\ud83d\ude00"}]}`},
	} {
		r := readResult(jsontext.Value(c.in))
		fmt.Fprintf(&b, "== %s\n", c.name)
		if r.IsError {
			b.WriteString("(the tool failed)\n")
		}
		for _, p := range r.ForModel(0) {
			if p.Kind == tool.Image {
				fmt.Fprintf(&b, "model: <%s, %d bytes>\n", p.MIME, len(p.Data))
				continue
			}
			fmt.Fprintf(&b, "model: %q\n", p.Text)
		}
		fmt.Fprintf(&b, "plain: %q\n", r.Plain())
	}
	golden := filepath.Join("testdata", "results.golden")
	if *testOnlyUpdate {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("results differ from %s (-update writes it):\n%s", golden, b.String())
	}
}

// X4, S13: an array of tiny parts does not take a hundred times its size, and the rest is said to be there.
func TestResultParts(t *testing.T) {
	r := readResult(jsontext.Value(`{"content":[0` + strings.Repeat(",0", maxContent+9) + `]}`))
	if len(r.Content) != maxContent+1 || r.Content[maxContent].Text != "[10 more parts left out]" {
		t.Errorf("%d parts, last %+v", len(r.Content), r.Content[len(r.Content)-1])
	}
}

// R-D5: what a server echoes of our secrets does not reach the model.
func TestResultScrubbed(t *testing.T) {
	const canary = "canary-5f3a-secret"
	s := secret.NewScrubber(secret.New(canary))
	in := `{"content":[{"type":"text","text":"env: ` + canary + `"},{"type":"resource","resource":{"uri":"x://` + canary + `","blob":"` +
		base64.StdEncoding.EncodeToString([]byte("KEY="+canary)) + `"}},{"type":"resource_link","uri":"` + canary + `","name":"` + canary + `","description":"` + canary + `"}],` +
		`"structuredContent":{"` + canary + `":"` + canary + `"}}`
	r := scrub(readResult(jsontext.Value(in)), s)
	if all := fmt.Sprintf("%+v %s %q", r, r.Structured, r.Content[1].Data); strings.Contains(all, canary) || !strings.Contains(all, "redacted") {
		t.Errorf("%s", all)
	}
}

func FuzzResult(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `{"content":[{"type":"text","text":"a"}],"isError":true}`, `{"content":[{"type":"image","data":"AAAA"}]}`, `{"content":[`,
		`{"content":[{"type":"resource","resource":{"blob":"=="}}],"structuredContent":{"a":1e999}}`, `{"content":"\ud800"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		r := readResult(jsontext.Value(in))
		r.Plain()
		parts := r.ForModel(1000)
		total := 0
		for _, p := range parts {
			total += len(p.Text)
		}
		if len(parts) == 0 || total > 1000 {
			t.Fatalf("%d parts, %d bytes", len(parts), total)
		}
		if len(r.Structured) > 0 && jsontext.Value(in).IsValid() && !r.Structured.IsValid() {
			t.Fatalf("structured content of %q: %s", in, r.Structured)
		}
	})
}

func BenchmarkResult(b *testing.B) {
	in := jsontext.Value(`{"content":[{"type":"text","text":"` + strings.Repeat("line of output\\n", 200) + `"}]}`)
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		readResult(in)
	}
}

// TestResultScrubbedAlike: a secret as long as its replacement, and one that something invisible tears apart, are found too (R-D5).
func TestResultScrubbedAlike(t *testing.T) {
	for _, value := range []string{"abcdef1234", "hunter2-hunter2"} {
		s := secret.NewScrubber(secret.New(value))
		torn := value[:3] + "\x1b[0m" + value[3:]
		quoted, err := jsontext.AppendQuote(nil, torn)
		if err != nil {
			t.Fatal(err)
		}
		in := `{"content":[{"type":"text","text":` + string(quoted) + `}],"structuredContent":{"a":"` + value + `","b":"` + value[:4] + "\u200b" + value[4:] + `"}}`
		r := scrub(readResult(jsontext.Value(in)), s)
		if shown := untrusted.Text(r.Plain() + string(r.Structured)); strings.Contains(shown, value) || !r.Structured.IsValid() {
			t.Errorf("%s: %s", value, shown)
		}
	}
}
