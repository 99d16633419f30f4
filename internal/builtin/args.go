package builtin

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"magi-code/internal/tool"
)

// number is an integer field. Models write 10, 10.0 and "10" for the same thing.
type number int

// UnmarshalJSON reads an integer in any of its spellings.
func (n *number) UnmarshalJSON(text []byte) error {
	s := string(bytes.TrimSpace(text))
	if unquoted, err := jsontext.AppendUnquote(nil, text); err == nil {
		s = strings.TrimSpace(string(unquoted))
	}
	f, err := strconv.ParseFloat(s, 64)
	const exact = 1 << 52 // beyond it a float is no longer every integer
	if err != nil || f != float64(int64(f)) || f > exact || f < -exact {
		return errors.New("not an integer")
	}
	*n = number(f)
	return nil
}

// or is the number, or a default when the field is missing or 0.
func (n number) or(byDefault int) int {
	if n == 0 {
		return byDefault
	}
	return int(n)
}

// within checks a number against its bounds.
func within(name string, n, low, high int) error {
	if n < low || n > high {
		return fmt.Errorf("%s must be between %d and %d", name, low, high)
	}
	return nil
}

// arguments reads the fields of a call into a struct. The error is a sentence for the model that names the field.
func arguments[T any](c tool.Call) (T, error) {
	var a T
	text := c.Arguments
	if len(bytes.TrimSpace(text)) == 0 {
		text = jsontext.Value("{}")
	}
	err := json.Unmarshal(text, &a, json.RejectUnknownMembers(true))
	if err == nil {
		return a, nil
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return a, errors.New("the arguments are not one JSON object with unique members")
	}
	field := clip(semantic.JSONPointer.LastToken(), maxShownName)
	if errors.Is(err, json.ErrUnknownName) {
		return a, fmt.Errorf("unknown field %q; the fields are %s", field, strings.Join(fields[T](), ", "))
	}
	if field == "" {
		return a, errors.New("the arguments must be a JSON object")
	}
	kind := "a string"
	switch {
	case semantic.GoType == nil:
	case semantic.GoType.Kind() == reflect.Int:
		kind = "an integer"
	case semantic.GoType.Kind() == reflect.Bool:
		kind = "true or false"
	}
	return a, fmt.Errorf("field %q must be %s", field, kind)
}

// maxShownName bounds in bytes how much of a wrong name an error repeats.
const maxShownName = 64

func fields[T any]() []string {
	names := []string{"intent"}
	for f := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// clip cuts s to at most limit bytes without splitting a character.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && s[limit]&0xC0 == 0x80 {
		limit--
	}
	return s[:limit]
}
