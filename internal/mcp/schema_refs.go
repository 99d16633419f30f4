package mcp

import (
	"net/url"
	"slices"
	"strings"
)

// reference is one $ref of a schema, to be resolved when the walk is over.
type reference struct {
	holder  *node
	keyword string
	steps   []string // from the root to what it means; nil for an anchor
	rest    string   // the pointer as it was written, behind the resource's own
	prefix  []string // the resource
	target  *node

	onWay, fine bool // see follow
}

// refer reads a reference; nil takes it out. Only what is inside the document can be meant: nothing is ever fetched (S31).
func (w *schemaWalk) refer(holder *node, keyword string, v *node, res *resource) *node {
	to, ok := v.text()
	if !ok {
		return nil
	}
	uri, fragment, _ := strings.Cut(to, "#")
	if uri != "" && uri != res.id && !strings.HasSuffix(res.id, "/"+uri) {
		return nil
	}
	r := &reference{holder: holder, keyword: keyword, prefix: res.steps}
	if fragment != "" && fragment[0] != '/' {
		r.rest = fragment
		w.refs = append(w.refs, r)
		return v
	}
	r.rest = fragment
	r.steps = slices.Clone(res.steps)
	if fragment != "" {
		for step := range strings.SplitSeq(fragment[1:], "/") {
			if plain, err := url.PathUnescape(step); err == nil {
				step = plain
			}
			r.steps = append(r.steps, strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~"))
		}
	}
	if r.steps == nil {
		r.steps = []string{}
	}
	w.refs = append(w.refs, r)
	return v
}

// resolve writes every reference as it is to read inside the wrapper, and takes out those that lead nowhere.
func (w *schemaWalk) resolve(root *node) {
	byHolder := make(map[*node]*reference, len(w.refs))
	for _, r := range w.refs {
		if r.steps == nil {
			if !w.anchors[r.rest] {
				r.holder.drop(r.keyword)
			} else {
				r.write("#" + r.rest)
			}
			continue
		}
		if r.target = r.find(root); r.target == nil {
			r.holder.drop(r.keyword)
			continue
		}
		if r.target.kind == 't' || r.target.kind == 'f' {
			r.holder.drop(r.keyword) // additionalProperties: true and its like say nothing
			continue
		}
		byHolder[r.holder] = r
		r.write("#" + argumentsPointer + pointer(r.prefix) + r.rest)
	}
	for _, r := range w.refs {
		if last := r.follow(byHolder); last != nil {
			last.holder.drop(last.keyword)
			delete(byHolder, last.holder)
		}
	}
}

// write sets the reference, in the keyword that every draft knows where the old one has no other meaning.
func (r *reference) write(to string) {
	if r.keyword == "$recursiveRef" {
		r.holder.drop(r.keyword)
		r.keyword = "$ref"
	}
	r.holder.put(r.keyword, str(to))
}

// find follows the steps. A tuple has moved from items to prefixItems.
func (r *reference) find(root *node) *node {
	at := root
	for i, step := range r.steps {
		next := at.child(step)
		if step == "items" && i+1 < len(r.steps) && isCount([]byte(r.steps[i+1])) {
			if tuple := at.child("prefixItems"); tuple != nil {
				next = tuple
				r.steps[i] = "prefixItems"
				r.rest = pointer(r.steps[len(r.prefix):])
			}
		}
		if at = next; at == nil {
			return nil
		}
	}
	return at
}

// follow goes from reference to reference as long as one leads straight to another. It returns the one that leads back to
// where we have been, nil when there is an end. Each reference is passed once in all.
func (r *reference) follow(byHolder map[*node]*reference) *reference {
	var passed []*reference
	var back *reference
	for at := r; at != nil && at.target != nil && !at.fine; at = byHolder[at.target] {
		if at.onWay {
			back = passed[len(passed)-1]
			break
		}
		at.onWay = true
		passed = append(passed, at)
	}
	for _, p := range passed {
		p.onWay, p.fine = false, true
	}
	return back
}

// pointer writes steps as a JSON pointer for a URI fragment.
func pointer(steps []string) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")))
	}
	return b.String()
}
