//go:build campaign && linux

package campaign

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"magi-code/internal/mcp/approval"
	"magi-code/internal/mcp/definition"
	"magi-code/internal/mcp/oauth"
	"magi-code/internal/session"
	"magi-code/internal/settings"
	"magi-code/test/zoo/httpzoo"
)

const (
	// mostSteps is how many steps a writer does at most before it is to be killed, nearly.
	mostSteps = 6
	// mostDelay is the longest wait from a step to the kill: about two steps.
	mostDelay = 6 * time.Millisecond
	// worldRounds is how many rounds one home lasts.
	worldRounds = 15
)

// strike waits for some steps and a random moment, then kills the writer.
func (w *writer) strike(r *rand.Rand) []string {
	w.await(r.IntN(mostSteps + 1))
	<-time.After(time.Duration(r.Int64N(int64(mostDelay))))
	return w.kill()
}

// ours is what a person has in the settings; no writer may touch it.
const ours = "{\n   \"model\" : \"offline\",  \"mine\": [1,  2,\t3],\n   \"permissions\": {\"ask\": [ \"bash\" ]}\n}\n"

// TestKilledSettings kills one of two writers of settings.json, sometimes both: what was acknowledged is there, nothing else of
// the file changed, the other writer goes on, and the next one cleans up. R-A8, R-A5.
func TestKilledSettings(t *testing.T) {
	t.Parallel()
	r := dice(t)
	var w *settingsWorld
	temps, kills := 0, 0
	for round := range rounds() {
		if round%worldRounds == 0 {
			w = newSettingsWorld(t, round/worldRounds%2 == 1)
		}
		a := start(t, "settings", strconv.Itoa(w.patched+1), w.home, "first")
		b := start(t, "approvals", strconv.Itoa(w.decided), w.home, w.project)
		victim, other := a, b
		if r.IntN(2) == 0 {
			victim, other = b, a
		}
		victim.strike(r)
		kills++
		other.await(len(other.done()) + 1) // a lock that died with its holder holds nobody up
		exact := r.IntN(3) > 0
		if exact {
			other.stop()
		} else {
			other.strike(r)
			kills++
		}
		w.check(t, len(a.done()), len(b.done()))
		for _, dir := range w.folders() {
			temps += checkLeftovers(t, dir, w.belong...)
		}
		if err := settings.Patch(t.Context(), w.settings(), []string{"never"}, nil); err != nil {
			t.Fatal(err)
		}
		w.ensureKey(t) // whose next writer is whoever needs it while there is none
		for _, dir := range w.folders() {
			checkClean(t, dir, w.belong...)
		}
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d kills in %d rounds, %d temporary files left and swept", kills, rounds(), temps)
}

// settingsWorld counts what was done in it.
type settingsWorld struct {
	*world
	target           string // the file that settings.json leads to, or itself
	belong           []string
	patched, decided int
}

// newSettingsWorld makes a home with settings of a person, linked ones from a folder of their own or plain ones.
func newSettingsWorld(t *testing.T, linked bool) *settingsWorld {
	w := &settingsWorld{world: newWorld(t, threeServers()), belong: []string{"settings.json", "mcp-approval.key"}}
	w.target = w.settings()
	if linked {
		w.target = filepath.Join(t.TempDir(), "settings.json")
		if err := os.Symlink(w.target, w.settings()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(w.target, []byte(ours), 0o640); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *settingsWorld) settings() string { return filepath.Join(w.home, "settings.json") }

// ensureKey makes the approval key if nobody has.
func (w *settingsWorld) ensureKey(t *testing.T) {
	t.Helper()
	d, err := find(w.home, w.project, names[0])
	if err == nil {
		_, err = approval.NewStore(w.home).Review(t.Context(), d)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *settingsWorld) folders() []string {
	if dir := filepath.Dir(w.target); dir != w.home {
		return []string{w.home, dir}
	}
	return []string{w.home}
}

// check compares the file with what the writers promised, and with the one step that each may have done besides.
func (w *settingsWorld) check(t *testing.T, patches, decisions int) {
	t.Helper()
	data, err := os.ReadFile(w.settings())
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Campaign map[string]struct {
			Step   int
			Filler string
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatalf("settings.json is broken: %v", err)
	}
	if head := strings.TrimSuffix(ours, "\n}\n"); !bytes.HasPrefix(data, []byte(head)) {
		t.Errorf("settings.json no longer begins as it did: %.120q", data)
	}
	if info, err := os.Stat(w.settings()); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode of settings.json became %v (%v)", info.Mode(), err)
	}
	got := doc.Campaign["first"]
	if low := w.patched + patches; got.Step < low || got.Step > low+1 || got.Step > 0 && got.Filler != filler(got.Step) {
		t.Errorf("settings.json is at step %d, and %d were acknowledged", got.Step, low)
	}
	w.patched = got.Step

	store := approval.NewStore(w.home)
	n := w.decided + decisions
	for j, name := range names {
		d, err := find(w.home, w.project, name)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := store.Check([]definition.Server{d})
		if err != nil {
			t.Fatal(err)
		}
		switch state := entries[0].State; {
		case state == shouldBe(j, n):
		case j == n%len(names) && state == shouldBe(j, n+1):
			w.decided = n + 1
		default:
			t.Errorf("server %s is %v, and after %d acknowledged decisions it must be %v", name, state, n, shouldBe(j, n))
		}
	}
	w.decided = max(w.decided, n)
}

// TestKilledKey kills some of the processes that make the approval key at once: there is one whole key or none, whoever was told
// a fingerprint was told that of the key that stays, and nothing else stays. R-A5.
func TestKilledKey(t *testing.T) {
	t.Parallel()
	r := dice(t)
	temps, late := 0, 0
	for round := range rounds() {
		w := newWorld(t, threeServers())
		all := make([]*writer, 3)
		for i := range all {
			all[i] = start(t, "key", "0", w.home, w.project)
		}
		deaths := 1 + r.IntN(len(all))
		told := map[string]bool{}
		all[r.IntN(len(all))].await(0)
		for i, p := range all {
			if i < deaths {
				pause(r, mostDelay/2)
				p.kill()
			} else {
				p.await(1)
				p.stop()
			}
			for _, line := range p.done() {
				_, fingerprint, _ := strings.Cut(line, " ")
				told[fingerprint] = true
			}
		}
		if key, err := os.ReadFile(filepath.Join(w.home, "mcp-approval.key")); err == nil && len(key) != 32 || err != nil && len(told) > 0 {
			t.Errorf("the key has %d bytes (%v), and %d fingerprints were told", len(key), err, len(told))
		}
		temps += checkLeftovers(t, w.home, "mcp-approval.key", "settings.json")
		d, err := find(w.home, w.project, names[0])
		if err != nil {
			t.Fatal(err)
		}
		v, err := approval.NewStore(w.home).Review(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if len(told) > 0 {
			late++
			told[v.Fingerprint] = true
		}
		if len(told) > 1 {
			t.Errorf("%d keys were told of", len(told))
		}
		if err := approval.NewStore(w.home).Revoke(t.Context(), d.Source, d.Name); err != nil {
			t.Fatal(err)
		}
		checkClean(t, w.home, "mcp-approval.key", "settings.json")
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d rounds, in %d of them a fingerprint was told, %d temporary files left and swept", rounds(), late, temps)
}

// TestKilledTokens kills processes that refresh a token: the file holds the last token that was given out or a newer one, and
// nothing else stays. With rotated refresh tokens a login can be lost between the authorization server's answer and the write,
// which no client can help, and then the error says so; with lasting ones never. R-O5.
func TestKilledTokens(t *testing.T) {
	t.Parallel()
	r := dice(t)
	var w *tokenWorld
	temps, lost := 0, 0
	for round := range rounds() {
		if round%worldRounds == 0 {
			w = newTokenWorld(t, round/worldRounds%2 == 0)
		}
		crew := []*writer{w.start(t)}
		if !w.rotates {
			crew = append(crew, w.start(t))
		}
		told := crew[0].strike(r)
		steps := len(told)
		if len(crew) > 1 {
			crew[1].await(len(crew[1].done()) + 1)
			told = append(told, crew[1].strike(r)...)
			steps = max(steps, len(crew[1].done()))
		}
		w.step += steps + 1
		file := w.read(t)
		for _, line := range told {
			if _, token, _ := strings.Cut(line, " "); serial(token) > serial(file.AccessToken) {
				t.Errorf("%s was given out, and the file holds %s", token, file.AccessToken)
			}
		}
		dir := filepath.Join(w.home, "mcp-tokens")
		temps += checkLeftovers(t, dir, "remote.json")
		source := oauth.NewSource(oauth.Options{Home: w.home, Server: tokenServer(w.mcp.URL()), Now: clock(w.step)})
		refusals := w.as.Refusals()
		_, err := source.Header(t.Context())
		w.step++
		if err != nil {
			if !w.rotates || w.as.Refusals() == refusals || !strings.Contains(err.Error(), "the login has ended") {
				t.Errorf("after a kill: %v", err)
			}
			lost++
		}
		if w.rotates { // what the killed process sent may arrive only now, and end the login that it belongs to
			w.login(t)
		}
		checkClean(t, dir, "remote.json")
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d rounds, %d logins lost to rotation, %d temporary files left and swept", rounds(), lost, temps)
}

// serial is the number in a token of the zoo: later ones have higher ones.
func serial(token string) int {
	n, _ := strconv.Atoi(token[strings.LastIndexByte(token, '-')+1:])
	return n
}

// tokenWorld is a login at a fake authorization server.
type tokenWorld struct {
	home    string
	as      *httpzoo.AS
	mcp     *httpzoo.MCP
	rotates bool
	step    int // where the clock is
}

func newTokenWorld(t *testing.T, rotates bool) *tokenWorld {
	t.Helper()
	mode := "keep-refresh"
	if rotates {
		mode = ""
	}
	w := &tokenWorld{home: t.TempDir(), as: httpzoo.StartAS(mode), rotates: rotates, step: 1}
	w.mcp = httpzoo.StartWith(&httpzoo.MCP{Auth: w.as})
	t.Cleanup(w.mcp.Close)
	t.Cleanup(w.as.Close)
	w.login(t)
	return w
}

func (w *tokenWorld) start(t *testing.T) *writer {
	return start(t, "tokens", strconv.Itoa(w.step), w.home, w.mcp.URL())
}

// login logs in with a browser that consents at once.
func (w *tokenWorld) login(t *testing.T) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	browse := func(ctx context.Context, url string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
	o := oauth.LoginOptions{Options: oauth.Options{Home: w.home, Server: tokenServer(w.mcp.URL()), Now: clock(w.step)}, Open: browse}
	if err := oauth.Login(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// tokenFile is what the test knows of a token file.
type tokenFile struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
}

// read reads the token file, which must be whole and private.
func (w *tokenWorld) read(t *testing.T) (f tokenFile) {
	t.Helper()
	path := filepath.Join(w.home, "mcp-tokens", "remote.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &f); err != nil || f.AccessToken == "" || f.RefreshToken == "" {
		t.Fatalf("the token file is broken: %v: %q", err, data)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token file has the mode %v (%v)", info.Mode(), err)
	}
	if state, err := oauth.Status(oauth.Options{Home: w.home, Server: tokenServer(w.mcp.URL())}); err != nil || state == oauth.Invalid {
		t.Errorf("the token file is %v: %v", state, err)
	}
	return f
}

// TestKilledSessions kills processes that append to a session, new ones and old ones: every acknowledged entry is there in its
// order, no line in between is broken, and the next process appends as if nothing had been. R-G8.
func TestKilledSessions(t *testing.T) {
	t.Parallel()
	r := dice(t)
	dir := filepath.Join(t.TempDir(), "sessions")
	store := session.NewStore(dir)
	id, n, empty, ids := "new", 0, 0, 0
	for round := range rounds() {
		if id != "new" && (r.IntN(8) == 0 || n > 300) {
			id, n = "new", 0
		}
		before, _ := filepath.Glob(filepath.Join(dir, "*"))
		p := start(t, "session", strconv.Itoa(n), dir, id)
		told := p.strike(r)
		if len(told) > 0 {
			_, id, _ = strings.Cut(told[0], " ")
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		if id == "new" { // nothing was acknowledged: there is no session, or a file that no list shows, or one whole step
			for _, f := range files {
				if slices.Contains(before, f) {
					continue
				}
				if s, err := store.Open(t.Context(), strings.TrimSuffix(filepath.Base(f), ".jsonl")); err == nil {
					id = s.ID()
					_ = s.Close()
				} else {
					empty++
					checkUnlisted(t, store, f)
				}
			}
		}
		if id == "new" {
			continue
		}
		n = checkSession(t, store, id, n+len(told))
		ids = len(files)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d rounds, %d sessions, %d without a first line", rounds(), ids, empty)
}

// checkUnlisted: a file that got no first line before its writer was killed is no session.
func checkUnlisted(t *testing.T, store *session.Store, file string) {
	t.Helper()
	infos, err := store.List("")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		if i.ID+".jsonl" == filepath.Base(file) {
			t.Errorf("%s holds no session and is listed", file)
		}
	}
}

// checkSession compares a session with n acknowledged steps and returns how many it holds.
func checkSession(t *testing.T, store *session.Store, id string, n int) (steps int) {
	t.Helper()
	s, err := store.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, e := range s.Entries() {
		switch e.Kind {
		case session.Header:
		case session.Message, session.Result:
			text := e.Text
			if e.Kind == session.Message {
				text = e.Message.Blocks[0].Text
			}
			want := sessionEntry(steps)
			whole := want.Text
			if want.Kind == session.Message {
				whole = want.Message.Blocks[0].Text
			}
			if text != whole {
				t.Errorf("step %d: %.60q", steps, text)
			}
			steps++
		default:
			t.Errorf("a line could not be read: %s", e.Text)
		}
	}
	if steps < n || steps > n+1 {
		t.Errorf("the session holds %d steps, and %d were acknowledged", steps, n)
	}
	return steps
}
