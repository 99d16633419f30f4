package streamable

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"magi-code/internal/mcp/jsonrpc"
	"magi-code/internal/secret"
	"magi-code/test/zoo/httpzoo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open connects to a zoo server and closes both at the end.
func open(t testing.TB, m *httpzoo.MCP, change ...func(*Options)) *Transport {
	t.Helper()
	o := Options{Name: "zoo", URL: secret.New(m.URL())}
	for _, c := range change {
		c(&o)
	}
	tr, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := tr.Close(ctx); err != nil {
			t.Error(err)
		}
		m.Close()
	})
	return tr
}

func request(id int, method, params string) jsonrpc.Request {
	r := jsonrpc.Request{ID: jsonrpc.ID(fmt.Sprint(id)), Method: method}
	if params != "" {
		r.Params = jsontext.Value(params)
	}
	return r
}

const version = "2025-06-18"

// handshake initializes; it fails the test when that does not work.
func handshake(t testing.TB, tr *Transport) {
	t.Helper()
	if err := tryHandshake(t.Context(), tr); err != nil {
		t.Fatal("handshake:", err)
	}
}

func tryHandshake(ctx context.Context, tr *Transport) error {
	r, err := tr.Call(ctx, request(0, "initialize", `{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`))
	if err != nil {
		return err
	}
	if r.Error != nil {
		return r.Error
	}
	tr.Negotiated(version)
	return tr.Notify(ctx, jsonrpc.Request{Method: "notifications/initialized"})
}

// echo calls the tool that answers at once.
func echo(t testing.TB, tr *Transport, id int) (jsonrpc.Response, error) {
	t.Helper()
	return tr.Call(t.Context(), request(id, "tools/call", fmt.Sprintf(`{"name":"echo","arguments":{"n":%d}}`, id)))
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("never happened:", what)
		}
	}
}
