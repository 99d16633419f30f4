package definition

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"magi-code/internal/jsondoc"
)

// text reads a string field; "" when it is missing or no string.
func (p *parser) text(v *jsondoc.Value, field string) string {
	f := v.Get(field)
	if f == nil {
		return ""
	}
	return p.textValue(f, field)
}

// textValue reads a string.
func (p *parser) textValue(f *jsondoc.Value, field string) string {
	if f.Kind != '"' {
		hint := ""
		switch f.Kind {
		case '0', 't', 'f':
			hint = "put it in double quotes"
		case 'n':
			hint = "leave it out"
		}
		p.fail(f.Start, field, "must be a string and is "+f.TypeName(), hint)
		return ""
	}
	return f.Text
}

// texts reads an array of strings; nil when it is missing or empty. Errors name it by label.
func (p *parser) texts(v *jsondoc.Value, field, label string) []string {
	f := v.Get(field)
	if f == nil {
		return nil
	}
	if f.Kind != '[' {
		hint := `write ["one", "two"]`
		if f.Kind == 'n' {
			hint = "leave it out"
		}
		p.fail(f.Start, label, "must be an array of strings and is "+f.TypeName(), hint)
		return nil
	}
	var out []string
	for i, item := range f.Items {
		out = append(out, p.textValue(item, label+"["+strconv.Itoa(i)+"]"))
	}
	return out
}

// pairs reads an object of strings, sorted; nil when it is missing or empty.
func (p *parser) pairs(v *jsondoc.Value, field string) []Pair {
	f := v.Get(field)
	if f == nil {
		return nil
	}
	if f.Kind != '{' {
		hint := `write {"NAME": "value"}`
		if f.Kind == 'n' {
			hint = "leave it out"
		}
		p.fail(f.Start, field, "must be an object of strings and is "+f.TypeName(), hint)
		return nil
	}
	var out []Pair
	for _, m := range f.Members {
		out = append(out, Pair{m.Name, p.textValue(m.Value, field+"."+m.Name)})
	}
	slices.SortFunc(out, func(a, b Pair) int {
		if field == "headers" {
			return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Name, b.Name))
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return out
}

// checkHeaderNames refuses two headers that are one to HTTP.
func (p *parser) checkHeaderNames(v *jsondoc.Value) {
	if v == nil {
		return
	}
	for i, m := range v.Members {
		for _, earlier := range v.Members[:i] {
			if strings.EqualFold(earlier.Name, m.Name) {
				p.fail(m.NameStart, "headers."+m.Name, "the header stands twice, in different case", "keep one of the two")
				break
			}
		}
	}
}

// oauth reads the OAuth settings; nil when there are none.
func (p *parser) oauth(v *jsondoc.Value, headers []Pair) *OAuth {
	f := v.Get("oauth")
	if f == nil {
		return nil
	}
	if f.Kind != '{' {
		hint := "write {} to log in with what the server tells about itself"
		if f.Kind == 'n' {
			hint = "leave it out, or " + hint
		}
		p.fail(f.Start, "oauth", "must be an object and is "+f.TypeName(), hint)
		return nil
	}
	for _, h := range headers {
		if strings.EqualFold(h.Name, "Authorization") || strings.EqualFold(h.Name, "Proxy-Authorization") {
			p.fail(f.Start, "oauth", "stands beside the static header "+h.Name+", and only one of them can authorize", "remove one of the two")
		}
	}
	p.unknown(f, "oauth.", []string{"client_id", "scopes", "authorization_server"})
	var o OAuth
	if id := f.Get("client_id"); id != nil {
		o.ClientID = p.textValue(id, "oauth.client_id")
	}
	o.Scopes = p.texts(f, "scopes", "oauth.scopes")
	if as := f.Get("authorization_server"); as != nil {
		o.AuthorizationServer = p.textValue(as, "oauth.authorization_server")
	}
	return &o
}

// timeout reads the timeout: a plain number, or 0 and the literal of one that cannot be a count of seconds.
func (p *parser) timeout(v *jsondoc.Value) (seconds int, odd string) {
	f := v.Get("timeout")
	if f == nil {
		return DefaultTimeout, ""
	}
	if f.Kind != '0' {
		hint := "write the seconds without quotes, for example 30"
		if f.Kind == 'n' {
			hint = "leave it out for 30 seconds"
		}
		p.fail(f.Start, "timeout", "must be a number and is "+f.TypeName(), hint)
		return 0, ""
	}
	literal := string(f.Raw)
	n, err := strconv.ParseInt(literal, 10, 32)
	if err != nil || strconv.FormatInt(n, 10) != literal {
		return 0, literal
	}
	return int(n), ""
}
