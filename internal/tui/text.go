package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"magi-code/internal/untrusted"
)

// line makes foreign text one safe line of at most width columns.
func line(s string, width int) string {
	return fit(untrusted.Line(untrusted.Head(s, maxLineBytes)), width)
}

const maxLineBytes = 8 << 10 // bytes of a foreign text that are looked at for one line

// fit cuts a line to a width.
func fit(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if len(s) <= width || ansi.StringWidth(s) <= width {
		return s
	}
	return ansi.Truncate(s, width, "…")
}

// pad fills a line with spaces up to a width.
func pad(s string, width int) string {
	if w := ansi.StringWidth(s); w < width {
		return s + strings.Repeat(" ", width-w)
	}
	return s
}

// sides puts left and right at the two ends of a line; right goes first when there is no room.
func sides(left, right string, width int) string {
	l, r := ansi.StringWidth(left), ansi.StringWidth(right)
	if r > 0 && l+r+1 > width {
		if width-r-1 >= 12 {
			left = fit(left, width-r-1)
			return pad(left, width-r) + right
		}
		return fit(left, width)
	}
	if r == 0 {
		return fit(left, width)
	}
	return left + strings.Repeat(" ", width-l-r) + right
}

// duration is a span as people read it.
func duration(d time.Duration) string {
	switch {
	case d > 0 && d < time.Millisecond:
		return "<1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// elapsed is a running span in whole seconds: it must not flicker.
func elapsed(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return duration(d.Truncate(time.Second))
}

func bytesText(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// count is a number of tokens as people read it.
func count(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}

// plural is "1 tool", "2 tools".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// ago is how long something is past.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return plural(int(d.Minutes()), "minute") + " ago"
	case d < 24*time.Hour:
		return plural(int(d.Hours()), "hour") + " ago"
	}
	return plural(int(d.Hours()/24), "day") + " ago"
}

// short shows a folder with ~ for the user's home.
func short(dir, home string) string {
	if home != "" && (dir == home || strings.HasPrefix(dir, home+"/")) {
		return "~" + dir[len(home):]
	}
	return dir
}
