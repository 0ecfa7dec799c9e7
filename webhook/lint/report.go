package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Report is everything that was found.
type Report struct {
	Objects    []Object     `json:"objects"`
	Unreadable []Unreadable `json:"unreadable,omitempty"`
	// Ignored counts the objects of other kinds.
	Ignored int `json:"ignored"`
}

// Place is where an object stands: the document of the file, counted from 1
// without empty ones, and within a list the item, counted from 1.
type Place struct {
	File     string `json:"file"`
	Document int    `json:"document,omitempty"`
	Item     int    `json:"item,omitempty"`
}

func (p Place) String() string {
	text := p.File
	if p.Document > 0 {
		text += fmt.Sprintf(":%d", p.Document)
	}
	if p.Item > 0 {
		text += fmt.Sprintf("[%d]", p.Item)
	}
	return text
}

// Object is one object that was judged.
type Object struct {
	Place
	Judgement
}

// Unreadable is a file, or a document of one, that cannot be judged.
type Unreadable struct {
	Place
	Message string `json:"message"`
}

func (r *Report) unreadable(at Place, err error) {
	r.Unreadable = append(r.Unreadable, Unreadable{Place: at, Message: oneLine(err).Error()})
}

// Refused and Warned count objects.
func (r *Report) Refused() int {
	return r.count(func(o Object) bool { return o.Verdict == Refused })
}

// Warned counts the admitted ones that admission would warn about.
func (r *Report) Warned() int {
	return r.count(func(o Object) bool { return o.Verdict == Admitted && len(o.Warnings) > 0 })
}

func (r *Report) count(is func(Object) bool) int {
	count := 0
	for _, object := range r.Objects {
		if is(object) {
			count++
		}
	}
	return count
}

// JSON writes the report for programs.
func (r *Report) JSON(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if r.Objects == nil {
		r.Objects = []Object{}
	}
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Text writes the report for people: nothing about objects without a fault,
// and a last line that counts them all.
func (r *Report) Text(to io.Writer) error {
	var b strings.Builder
	for _, object := range r.Objects {
		who := fmt.Sprintf("%s: %s %s/%s", object.Place, object.Kind, object.Namespace, object.Name)
		if object.Verdict == Refused {
			fmt.Fprintf(&b, "%s: refused\n", who)
		} else if len(object.Warnings) > 0 {
			fmt.Fprintf(&b, "%s: admitted with a warning\n", who)
		}
		for _, finding := range object.Findings {
			where := finding.Field
			if where != "" {
				where += ": "
			}
			fmt.Fprintf(&b, "  %s%s\n", where, indented(finding.Message))
		}
		for _, warning := range object.Warnings {
			fmt.Fprintf(&b, "  Warning: %s\n", warning)
		}
	}
	for _, u := range r.Unreadable {
		fmt.Fprintf(&b, "%s: unreadable: %s\n", u.Place, u.Message)
	}
	fmt.Fprintf(&b, "%d judged, %d refused, %d with a warning; %d of other kinds; %d unreadable\n",
		len(r.Objects), r.Refused(), r.Warned(), r.Ignored, len(r.Unreadable))
	if _, err := io.WriteString(to, b.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func indented(message string) string { return strings.ReplaceAll(message, "\n", "\n    ") }
