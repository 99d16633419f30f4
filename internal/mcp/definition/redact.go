package definition

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"magi-code/internal/untrusted"
)

// Redacted returns the unexpanded definition for display: references shown by name, literal env and header
// values masked, URL query masked, arguments that look like credentials masked, hidden characters visible.
// Variables that decide what code a child runs are shown in full and flagged.
func (s Server) Redacted() []Line {
	v := view{}
	v.add("type", string(s.Type))
	switch s.Type {
	case Stdio:
		v.stdio(s)
	case HTTP:
		v.http(s)
	}
	v.timeout(s)
	if s.OAuth != nil {
		v.oauth(*s.OAuth)
	}
	return v.lines
}

// view collects the lines.
type view struct{ lines []Line }

// add appends a line, its texts made visible.
func (v *view) add(label, value string, flags ...string) {
	var set []string
	for _, f := range flags {
		if f != "" {
			set = append(set, f)
		}
	}
	v.lines = append(v.lines, Line{untrusted.Visible(label), untrusted.Visible(value), strings.Join(set, "; ")})
}

// stdio shows what starts a child.
func (v *view) stdio(s Server) {
	shell := ""
	if runsShell(s.Command, s.Args) {
		shell = "runs a shell"
	}
	m := masker{}
	v.add("command", m.text(s.Command, m.words), shell, relative(s.Command), oddText(s.Command))
	for i, a := range s.Args {
		m.code = shell != ""
		v.add("args["+strconv.Itoa(i)+"]", m.arg(before(s.Args, i), a), oddText(a))
	}
	for _, p := range s.Env {
		shown, flag := m.text(p.Value, m.all), ""
		if decidesCode(p.Name) && !isSecretName(p.Name) { // the tokens of package runners have names like the rest of their settings
			shown, flag = m.text(p.Value, m.words), "decides what the program runs or loads"
		}
		v.add("env."+p.Name, orEmpty(shown), flag, oddName(p.Name), oddText(p.Value))
	}
}

// relative flags a command that is a file of whatever folder the program is started in.
func relative(command string) string {
	first, _, _ := strings.Cut(command, "${")
	if strings.ContainsAny(first, `/\`) && !filepath.IsAbs(first) && !strings.HasPrefix(first, "/") {
		return "a file below the working folder"
	}
	return ""
}

// before is the argument in front of the i-th; "" for the first.
func before(args []string, i int) string {
	if i == 0 {
		return ""
	}
	return args[i-1]
}

// http shows what reaches an endpoint.
func (v *view) http(s Server) {
	plain := ""
	if strings.HasPrefix(strings.ToLower(s.URL), "http:") {
		plain = "plain http, not encrypted"
	}
	shown := maskURL(s.URL, true)
	v.add("url", shown, plain, foreignHost(s.URL), hiddenReferences(s.URL, shown), oddText(s.URL))
	for _, p := range s.Headers {
		v.add("headers."+p.Name, orEmpty(maskHeader(p.Value)), oddName(p.Name), oddText(p.Value))
	}
}

// timeout shows the seconds.
func (v *view) timeout(s Server) {
	shown, flag := strconv.Itoa(s.Timeout)+" s", ""
	if s.oddTimeout != "" {
		shown = untrusted.Head(s.oddTimeout, shownName)
	}
	if s.oddTimeout != "" || s.Timeout < 1 || s.Timeout > MaxTimeout {
		flag = fmt.Sprintf("not a whole number from 1 to %d", MaxTimeout)
	}
	v.add("timeout", shown, flag)
}

// oauth shows the login settings.
func (v *view) oauth(o OAuth) {
	literal := func(s string) string {
		if strings.Contains(s, "${") {
			return "references are not expanded here"
		}
		return ""
	}
	if o.ClientID == "" && len(o.Scopes) == 0 && o.AuthorizationServer == "" {
		v.add("oauth", "with what the server tells about itself")
	}
	if o.ClientID != "" {
		v.add("oauth.client_id", o.ClientID, literal(o.ClientID), oddText(o.ClientID))
	}
	if len(o.Scopes) > 0 {
		all := strings.Join(o.Scopes, " ")
		v.add("oauth.scopes", all, literal(all), oddText(all))
	}
	if o.AuthorizationServer != "" {
		v.add("oauth.authorization_server", maskURL(o.AuthorizationServer, true), literal(o.AuthorizationServer), oddText(o.AuthorizationServer))
	}
}

// orEmpty makes an empty value visible.
func orEmpty(s string) string {
	if s == "" {
		return `""`
	}
	return s
}

// oddName flags a name in which something hides.
func oddName(name string) string {
	if untrusted.HasHidden(name) || strings.ContainsAny(name, "\r\n\t") {
		return "hidden characters in the name"
	}
	return ""
}

// oddText flags a value in which something hides or is broken.
func oddText(value string) string {
	_, err := split(value)
	switch {
	case untrusted.HasHidden(value):
		return "hidden characters"
	case strings.ContainsAny(value, "\r\n\t"):
		return "line breaks or tabs"
	case strings.TrimSpace(value) != value:
		return "white space at an end"
	case err != nil:
		return err.Error()
	}
	return ""
}

// maxHiddenReferences bounds the variables that one flag names.
const maxHiddenReferences = 8

// hiddenReferences flags variables of a URL that masking took out of sight: who approves must see which secrets go where.
func hiddenReferences(raw, shown string) string {
	parts, _ := split(raw) // a broken reference is flagged as such, and never expanded
	var names []string
	for _, p := range parts {
		ref := "${" + p.name
		if p.name == "" || strings.Contains(shown, ref+"}") || strings.Contains(shown, ref+":-") || slices.Contains(names, ref+"}") {
			continue
		}
		if len(names) == maxHiddenReferences {
			names = append(names, "others")
			break
		}
		names = append(names, ref+"}")
	}
	if names == nil {
		return ""
	}
	return "what is masked takes " + strings.Join(names, ", ")
}

// foreignHost flags letters in a URL's host that may look like others.
func foreignHost(raw string) string {
	_, rest, _ := strings.Cut(raw, "://")
	if strings.ContainsFunc(rest[:endOfAuthority(rest)], func(r rune) bool { return r > '~' }) {
		return "letters beyond ASCII in the host"
	}
	return ""
}

// runsShell reports whether a command is a shell, or hands one its arguments.
func runsShell(command string, args []string) bool {
	if isShell(command) {
		return true
	}
	for i, a := range args {
		if isShell(a) && i+1 < len(args) && (strings.HasPrefix(args[i+1], "-") || strings.HasPrefix(args[i+1], "/")) {
			return true
		}
	}
	return false
}

// isShell reports whether a path names a command interpreter.
func isShell(path string) bool {
	base := strings.ToLower(filepath.Base(strings.ReplaceAll(path, `\`, "/")))
	switch strings.TrimSuffix(base, ".exe") {
	case "sh", "bash", "zsh", "dash", "ash", "ksh", "fish", "csh", "tcsh", "busybox", "cmd", "powershell", "pwsh", "osascript":
		return true
	}
	return false
}

// decidesCode reports whether a variable decides what code a program loads, runs or trusts.
func decidesCode(name string) bool {
	n := strings.ToUpper(name)
	for _, prefix := range []string{"LD_", "DYLD_", "GIT_CONFIG", "BASH_FUNC_", "LUA_INIT",
		"NPM_CONFIG_", "PNPM_", "YARN_", "BUN_", "DENO_", "PIP_", "UV_", "PIPX_", "CARGO_"} {
		if strings.HasPrefix(n, prefix) {
			return true
		}
	}
	switch n {
	case "PATH", "PATHEXT", "COMSPEC", "SHELL", "IFS", "ENV", "BASH_ENV", "ZDOTDIR", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND",
		"NODE_OPTIONS", "NODE_PATH", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "BUN_OPTIONS", "DENO_DIR",
		"PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONUSERBASE", "PYTHONBREAKPOINT", "PYTHONWARNINGS", "VIRTUAL_ENV",
		"PERL5OPT", "PERL5LIB", "PERL5DB", "PERLLIB", "RUBYOPT", "RUBYLIB", "GEM_HOME", "GEM_PATH", "PHPRC", "PHP_INI_SCAN_DIR", "LUA_INIT", "LUA_PATH", "LUA_CPATH",
		"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "JAVA_HOME",
		"DOTNET_STARTUP_HOOKS", "CORECLR_PROFILER", "CORECLR_PROFILER_PATH", "COR_PROFILER", "COR_PROFILER_PATH",
		"GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXEC_PATH", "GIT_ASKPASS", "GIT_PAGER", "GIT_EDITOR", "GIT_EXTERNAL_DIFF", "SSH_ASKPASS",
		"EDITOR", "VISUAL", "PAGER", "BROWSER", "LESSOPEN", "MANPAGER", "GIT_PROXY_COMMAND",
		"GOFLAGS", "GOPROXY", "GOTOOLCHAIN", "OPENSSL_CONF", "OPENSSL_MODULES", "DOCKER_HOST", "KUBECONFIG",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "GCONV_PATH", "ELECTRON_RUN_AS_NODE",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE":
		return true
	}
	return false
}
