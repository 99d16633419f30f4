package httpzoo

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

var testOnlyBinary string // magi-code, built once

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "httpzoo")
	if err != nil {
		panic(err)
	}
	testOnlyBinary = filepath.Join(dir, "magi-code")
	if out, err := exec.Command("go", "build", "-o", testOnlyBinary, "magi-code").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v\n%s", err, out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// desk is a user: a home with definitions, and a folder to work in.
type desk struct {
	t             testing.TB
	home, project string
	env           []string
}

func newDesk(t testing.TB, servers map[string]any) *desk {
	t.Helper()
	d := &desk{t: t, home: t.TempDir(), project: t.TempDir()}
	b, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.home, ".mcp.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	for name := range servers {
		out, _, _ := d.run("mcp", "get", name, "--json")
		var got struct{ Fingerprint string }
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err, out)
		}
		if _, errs, code := d.run("mcp", "approve", name, "--fingerprint", got.Fingerprint); code != 0 {
			t.Fatal(errs)
		}
	}
	return d
}

func (d *desk) command(args ...string) *exec.Cmd {
	cmd := exec.Command(testOnlyBinary, args...)
	cmd.Dir = d.project
	cmd.Env = append(os.Environ(), "MC_HOME="+d.home, "CANARY_TOKEN=canary-7d1f-secret")
	cmd.Env = append(cmd.Env, d.env...)
	return cmd
}

func (d *desk) run(args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	cmd := d.command(args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run()
	if cmd.ProcessState != nil {
		code = cmd.ProcessState.ExitCode()
	}
	for _, s := range []string{o.String(), e.String()} {
		if strings.Contains(s, "canary-7d1f") || strings.Contains(s, "zoo-access") || strings.Contains(s, "zoo-refresh") || strings.Contains(s, "\x1b") {
			d.t.Errorf("%v tells what it must not: %s", args, s) // S34
		}
	}
	return o.String(), e.String(), code
}

func entry(url string, more map[string]any) map[string]any {
	e := map[string]any{"type": "http", "url": url + "?key=canary-7d1f-query", "timeout": 10}
	for k, v := range more {
		e[k] = v
	}
	return e
}

// TestList: what mcp list says of servers that misbehave: the phase, a sentence and a cure, and exit 0. R-D1, R-D2.
func TestList(t *testing.T) {
	want := map[string][]string{ // mode: parts of the lines about it
		"good-sse": {"2 tools"}, "no-session": {"2 tools"}, "get-405": {"2 tools"}, "notify-204": {"2 tools"},
		"html": {"initialize", "web page"}, "redirect-308": {"initialize", "redirects to"}, "status-401": {"initialize", "authorization"},
		"status-404": {"initialize", "404"}, "status-405": {"initialize", "405"}, "bad-session": {"initialize", "session id"}, "version-2024-11-05": {"initialize", "2024-11-05"},
		"version-2026-07-28": {"initialize", "2026-07-28"},
	}
	servers := map[string]any{}
	var zoo []*MCP
	for mode := range want {
		m := StartWith(&MCP{Mode: mode, Target: "https://elsewhere.example/mcp/?canary-7d1f"})
		zoo = append(zoo, m)
		defer m.Close()
		servers[mode] = entry(m.URL(), map[string]any{"headers": map[string]any{"X-Token": "${CANARY_TOKEN}"}})
	}
	d := newDesk(t, servers)
	out, errs, code := d.run("mcp", "list")
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	for mode, parts := range want {
		text := ""
		for _, l := range strings.Split(out+errs, "\n") {
			if strings.HasPrefix(l, mode+" ") || strings.Contains(l, `"`+mode+`"`) {
				text += l + "\n"
			}
		}
		for _, p := range parts {
			if !strings.Contains(text, p) {
				t.Errorf("%s lacks %q:\n%s", mode, p, text)
			}
		}
		if !strings.Contains(text, "http http://127.0.0.1:") || strings.Contains(text, "?") {
			t.Errorf("%s is not shown as it should be:\n%s", mode, text)
		}
	}
	for _, m := range zoo {
		for _, r := range m.Requests() {
			if r.Header.Get("X-Token") != "canary-7d1f-secret" || !strings.Contains(r.Query, "canary-7d1f-query") {
				t.Errorf("%s: %s %s came without its header or query", m.Mode, r.Method, r.RPC)
			}
		}
	}
}

// TestProgramLogin: a run says which command to use; login shows who is asked before the URL; then runs work, and eight of
// them at once refresh an expired token once. R-O1, R-O4, R-O5, S18, B35.
func TestProgramLogin(t *testing.T) {
	as := StartASWith(&AS{Mode: "scope-header", Scopes: []string{"tools"}})
	defer as.Close()
	m := StartWith(&MCP{Auth: as})
	defer m.Close()
	d := newDesk(t, map[string]any{"zoo": entry(m.URL(), map[string]any{"oauth": map[string]any{}})})
	if _, errs, code := d.run("mcp", "test", "zoo"); code == 0 || !strings.Contains(errs, "magi-code mcp login zoo") {
		t.Errorf("before: %d %s", code, errs)
	}
	if len(as.Requests()) != 0 {
		t.Error("a run asked the authorization server") // S26
	}
	login(t, d, as)
	if out, errs, code := d.run("mcp", "test", "zoo"); code != 0 || !strings.Contains(out, "echo") {
		t.Errorf("after: %d %s%s", code, out, errs)
	}
	if out, _, _ := d.run("mcp", "list"); !strings.Contains(out, "authenticated") {
		t.Errorf("list: %s", out)
	}
	expire(t, d)
	as.Revoke()
	before := as.Count("/token")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if out, errs, code := d.run("mcp", "test", "zoo"); code != 0 {
				t.Errorf("%d %s%s", code, out, errs)
			}
		})
	}
	wg.Wait()
	if n := as.Count("/token") - before; n != 1 || as.Refusals() != 0 {
		t.Errorf("%d refreshes, %d refused", n, as.Refusals())
	}
	if out, _, code := d.run("mcp", "logout", "zoo"); code != 0 || !strings.Contains(out, "logged out") {
		t.Errorf("logout: %d %s", code, out)
	}
	if _, errs, code := d.run("mcp", "test", "zoo"); code == 0 || !strings.Contains(errs, "magi-code mcp login zoo") {
		t.Errorf("after logout: %d %s", code, errs)
	}
	for _, r := range as.Requests() {
		if r.Header.Get("X-Token") != "" || strings.Contains(r.Query+r.Body, "canary") {
			t.Errorf("%s got what is not for it", r.Path)
		}
	}
}

// login runs mcp login without a browser, and goes where its URL leads.
func login(t *testing.T, d *desk, as *AS) {
	t.Helper()
	cmd := d.command("mcp", "login", "zoo", "--no-browser")
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() }).Stop()
	var seen bytes.Buffer
	url := regexp.MustCompile(`http://\S+/authorize\?\S+`)
	visited := false
	buf := make([]byte, 4096)
	for {
		n, err := errs.Read(buf)
		seen.Write(buf[:n])
		if u := url.FindString(seen.String()); u != "" && strings.HasSuffix(seen.String(), "\n") && !visited {
			visited = true
			shown := seen.String()[:strings.Index(seen.String(), u)]
			if !strings.Contains(shown, as.Origin()) || !strings.Contains(shown, "tools") {
				t.Errorf("the prompt lacks origin or scopes: %s", shown)
			}
			tr := &http.Transport{}
			resp, err := (&http.Client{Transport: tr}).Get(u)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			tr.CloseIdleConnections()
		}
		if err == io.EOF || err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("login: %v\n%s", err, seen.String())
	}
}

// expire makes the stored token an old one.
func expire(t *testing.T, d *desk) {
	t.Helper()
	p := filepath.Join(d.home, "mcp-tokens", "zoo.json")
	b, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	var f map[string]any
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"obtained_at", "refresh_at", "expires_at"} {
		f[k] = "2020-01-01T00:00:00Z"
	}
	if b, err = json.Marshal(f); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTLS: a private authority through SSL_CERT_FILE, HTTP/2, and a proxy from the environment. X6.
func TestTLS(t *testing.T) {
	m := &MCP{}
	m.prepare()
	protocols := map[string]bool{}
	m.srv = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		protocols[r.Proto+" "+r.Host] = true
		m.mu.Unlock()
		m.ServeHTTP(w, r)
	}))
	m.srv.EnableHTTP2 = true
	m.srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	m.srv.StartTLS()
	defer m.Close()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	address := m.srv.Listener.Addr().String()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tunnel(t, w, r, address) }))
	defer proxy.Close()
	d := newDesk(t, map[string]any{"direct": entry(m.URL(), nil), "proxied": entry("https://example.com/mcp", nil)})
	if _, errs, code := d.run("mcp", "test", "direct"); code == 0 || !strings.Contains(errs, "TLS") || !strings.Contains(errs, "SSL_CERT_FILE") {
		t.Errorf("unknown authority: %d %s", code, errs)
	}
	d.env = []string{"SSL_CERT_FILE=" + authority, "HTTPS_PROXY=http://user:canary-7d1f-proxy@" + strings.TrimPrefix(proxy.URL, "http://"), "NO_PROXY="}
	for _, name := range []string{"direct", "proxied"} {
		if out, errs, code := d.run("mcp", "test", name); code != 0 {
			t.Errorf("%s: %d %s%s", name, code, out, errs)
		}
	}
	if !protocols["HTTP/2.0 "+address] || !protocols["HTTP/2.0 example.com"] {
		t.Errorf("spoke %v", protocols)
	}
	for _, dead := range []string{"127.0.0.1:1", "127.0.0.1:99999999"} {
		d.env[1] = "HTTPS_PROXY=http://user:canary-7d1f-proxy@" + dead
		if _, errs, code := d.run("mcp", "test", "proxied"); code == 0 || !strings.Contains(errs, "the proxy") {
			t.Errorf("%s: %d %s", dead, code, errs)
		}
	}
}

// tunnel is a proxy's CONNECT to one place, whatever was asked for.
func tunnel(t *testing.T, w http.ResponseWriter, r *http.Request, to string) {
	if r.Method != http.MethodConnect || r.Host != "example.com:443" || r.Header.Get("Proxy-Authorization") == "" {
		t.Errorf("%s %s", r.Method, r.Host)
	}
	up, err := net.Dial("tcp", to)
	if err != nil {
		t.Error(err)
		return
	}
	down, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(up, down)
		_ = up.Close()
	}()
	_, _ = io.Copy(down, up)
	_ = down.Close()
}

// BenchmarkList: mcp list over ten HTTP servers, the whole program from start to exit.
func BenchmarkList(b *testing.B) {
	servers := map[string]any{}
	for i := range 10 {
		m := Start("")
		defer m.Close()
		servers[fmt.Sprint("zoo", i)] = entry(m.URL(), nil)
	}
	d := newDesk(b, servers)
	for b.Loop() {
		if _, errs, code := d.run("mcp", "list"); code != 0 || errs != "" {
			b.Fatal(errs)
		}
	}
}
