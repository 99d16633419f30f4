package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"magi-code/internal/safefile"
	"magi-code/internal/untrusted"
)

const (
	// maxProfileFile is the size of one profile in bytes: its text is paid with every request of the child.
	maxProfileFile = 64 << 10
	// maxProfiles is how many profiles are read: each stands in a tool description.
	maxProfiles = 50
	// maxProfileName is the length of a profile's name in bytes.
	maxProfileName = 40
	// maxProfileDescription is the length of a profile's description in bytes.
	maxProfileDescription = 300
)

// Profile is a subagent profile from $MC_HOME/subagents/NAME.md: front matter, then instructions.
type Profile struct {
	Name, Description, Instructions string
	Tools                           []string // name patterns that the child may use; empty: all of the parent's
	Model                           string
}

// LoadProfiles reads dir/*.md. A malformed profile is left out with a warning.
func LoadProfiles(dir string) (profiles []Profile, warnings []string) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []string{fmt.Sprintf("subagent profiles are not used: %s", err)}
	}
	seen := map[string]string{}
	for _, e := range entries {
		file := e.Name()
		if filepath.Ext(file) != ".md" || strings.HasPrefix(file, ".") {
			continue
		}
		shown := untrusted.Line(file)
		if len(profiles) == maxProfiles {
			return profiles, append(warnings, fmt.Sprintf("more than %d subagent profiles; those from %q on are not used", maxProfiles, shown))
		}
		p, err := loadProfile(filepath.Join(dir, file))
		if err == nil && seen[p.Name] != "" {
			err = fmt.Errorf("the name %q is already that of %s", p.Name, seen[p.Name])
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("subagent profile %s is not used: %s", shown, err))
			continue
		}
		seen[p.Name] = shown
		profiles = append(profiles, p)
	}
	slices.SortFunc(profiles, func(a, b Profile) int { return strings.Compare(a.Name, b.Name) })
	return profiles, warnings
}

func loadProfile(path string) (Profile, error) {
	data, err := safefile.Read(path, maxProfileFile)
	if err != nil {
		return Profile{}, err
	}
	p, err := parseProfile(string(data))
	if err == nil && p.Name == "" {
		p.Name = strings.TrimSuffix(filepath.Base(path), ".md")
		err = checkProfileName(p.Name)
	}
	return p, err
}

// parseProfile reads front matter of "key: value" lines between two lines "---", and the instructions after it. It is
// not YAML: a value is the rest of its line, and a key that is not ours is an error, so that nothing is taken for set
// that is not.
func parseProfile(text string) (Profile, error) {
	var p Profile
	if !utf8.ValidString(text) {
		return p, errors.New("it is not UTF-8")
	}
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n")
	rest, found := strings.CutPrefix(text, "---\n")
	if !found {
		return p, errors.New(`the first line must be "---"`)
	}
	set := map[string]bool{}
	for number := 2; ; number++ {
		line, after, more := strings.Cut(rest, "\n")
		if strings.TrimRight(line, " \t") == "---" {
			p.Instructions = strings.TrimSpace(after)
			break
		}
		if !more {
			return p, errors.New(`the front matter has no closing line "---"`)
		}
		rest = after
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, found := strings.Cut(line, ":")
		if !found || key != strings.TrimSpace(key) {
			return p, fmt.Errorf(`line %d is not "key: value"`, number)
		}
		if set[key] {
			return p, fmt.Errorf("line %d sets %q again", number, untrusted.Line(key))
		}
		set[key] = true
		if err := p.set(key, unquote(strings.TrimSpace(value))); err != nil {
			return p, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if p.Description == "" {
		return p, errors.New("it needs a description: the model chooses by it")
	}
	if p.Instructions == "" {
		return p, errors.New("it has no instructions after the front matter")
	}
	return p, nil
}

func (p *Profile) set(key, value string) error {
	if value == "" {
		return fmt.Errorf("%s has no value", untrusted.Line(key))
	}
	switch key {
	case "name":
		p.Name = value
		return checkProfileName(value)
	case "description":
		if len(value) > maxProfileDescription {
			return fmt.Errorf("the description is longer than %d bytes", maxProfileDescription)
		}
		p.Description = untrusted.Line(value)
	case "model":
		p.Model = untrusted.Line(value)
	case "tools":
		value = strings.TrimSuffix(strings.TrimPrefix(value, "["), "]")
		for one := range strings.SplitSeq(value, ",") {
			one = unquote(strings.TrimSpace(one))
			if one == "" {
				return errors.New("tools holds an empty pattern")
			}
			p.Tools = append(p.Tools, one)
		}
	default:
		return fmt.Errorf("unknown key %q; known are name, description, tools, model", untrusted.Head(untrusted.Line(key), maxProfileName))
	}
	return nil
}

// unquote removes one pair of quotes around a value.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

func checkProfileName(name string) error {
	good := name != "" && len(name) <= maxProfileName
	for _, c := range name {
		good = good && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	}
	if !good {
		return fmt.Errorf("the name must be 1 to %d letters, digits, - or _", maxProfileName)
	}
	return nil
}
