package lint

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	strict "github.com/go-json-experiment/json"
	goyaml "go.yaml.in/yaml/v2"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Stdin is the name of the file that stands for what is piped in.
const Stdin = "-"

// extensions of the files that are looked for in a directory.
var extensions = []string{".yaml", ".yml", ".json"}

// Files judges the manifests in files, in directories and below, and in what
// is piped in. What cannot be read is part of the report, and the rest is
// judged nevertheless.
func (l *Linter) Files(paths []string, stdin io.Reader) *Report {
	r := &Report{}
	for _, path := range paths {
		if path == Stdin {
			l.file(r, Stdin, stdin)
			continue
		}
		for _, name := range below(path, func(name string, err error) { r.unreadable(Place{File: name}, err) }) {
			file, err := os.Open(name)
			if err != nil {
				r.unreadable(Place{File: name}, err)
				continue
			}
			l.file(r, name, file)
			_ = file.Close()
		}
	}
	return r
}

// below lists the manifests of a directory, hidden ones left out, and complains
// about what it cannot look into; a file is taken whatever its name and sort is.
func below(root string, complain func(path string, err error)) []string {
	if info, err := os.Stat(root); err == nil && info.IsDir() && !os.IsPathSeparator(root[len(root)-1]) {
		root += string(os.PathSeparator) // or a symlink would not be followed
	}
	var files []string
	// Every error is told where it is met, and nothing ends the walk.
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			complain(path, err)
		case path == root && !entry.IsDir():
			files = append(files, path)
		case path != root && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case slices.Contains(extensions, filepath.Ext(path)) && holdsText(path, entry):
			files = append(files, path)
		}
		return nil
	})
	return files
}

// holdsText leaves out directories, and what would be waited for in vain such
// as a pipe, behind symlinks too. A symlink to nothing is for the reader to
// complain about.
func holdsText(path string, entry fs.DirEntry) bool {
	if entry.Type().IsRegular() {
		return true
	}
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

func (l *Linter) file(r *Report, name string, content io.Reader) {
	place := Place{File: name}
	err := documents(content, func(d document) {
		if d.text != nil && bytes.Equal(d.text, []byte("null")) {
			return // nothing but comments
		}
		place.Document++
		err := d.broken
		if err == nil {
			err = l.document(r, place, d)
		}
		if err != nil {
			r.unreadable(place, err)
		}
	})
	if err != nil {
		r.unreadable(Place{File: name}, err)
	}
}

// document is one document of a file, as JSON. broken says why it has no text;
// twice that it gives a name twice, which is tolerated where nothing is judged.
type document struct {
	text          []byte
	broken, twice error
}

func (d document) whole() bool { return d.broken == nil && d.twice == nil }

// documents hands over every document of a file. A text that begins like JSON
// is JSON, whatever the file's name says, unless only YAML can be made of it.
func documents(content io.Reader, take func(document)) error {
	text, err := io.ReadAll(content)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	var all []document
	if beginsLikeJSON.Match(text) {
		var wrong error
		if all, wrong = fromJSON(text); wrong != nil {
			if all, err = manyFromYAML(text); err != nil || slices.ContainsFunc(all, func(d document) bool { return !d.whole() }) {
				return wrong
			}
		}
	}
	if all == nil {
		if all, err = manyFromYAML(text); err != nil {
			return err
		}
	}
	for _, d := range all {
		take(d)
	}
	return nil
}

var beginsLikeJSON = regexp.MustCompile(`^\s*(\{\s*["}]|\[)`)

func fromJSON(text []byte) ([]document, error) {
	var all []document
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var one json.RawMessage
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read JSON: %w", err)
		}
		var anything any
		all = append(all, document{text: one, twice: strict.Unmarshal(one, &anything)})
	}
}

func manyFromYAML(text []byte) ([]document, error) {
	var all []document
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		one, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		all = append(all, fromYAML(one))
	}
}

func fromYAML(text []byte) document {
	decoder := goyaml.NewDecoder(bytes.NewReader(text))
	for count := 0; ; count++ {
		var anything any
		if err := decoder.Decode(&anything); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return document{broken: oneLine(err)}
		}
		if count == 1 {
			return document{broken: errors.New("another document begins within this one: separate them by a line of three dashes and nothing else")}
		}
	}
	converted, err := yaml.YAMLToJSON(text)
	if err != nil {
		return document{broken: oneLine(err)}
	}
	if _, err := yaml.YAMLToJSONStrict(text); err != nil {
		return document{text: converted, twice: oneLine(err)}
	}
	return document{text: converted}
}

func oneLine(err error) error {
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}

// document judges one object, or each item of a list of them.
func (l *Linter) document(r *Report, place Place, d document) error {
	var list struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(d.text, &list) == nil && strings.HasSuffix(list.Kind, "List") && list.Items != nil {
		for i, item := range list.Items {
			place.Item = i + 1
			if err := l.object(r, place, ofList(item, list.APIVersion, list.Kind), d.twice); err != nil {
				return fmt.Errorf("item %d: %w", place.Item, err)
			}
		}
		return nil
	}
	return l.object(r, place, d.text, d.twice)
}

// ofList is an item with the kind that its list implies, as kubectl takes it
// where the item tells none.
func ofList(item json.RawMessage, apiVersion, listKind string) json.RawMessage {
	var fields map[string]json.RawMessage
	kind := strings.TrimSuffix(listKind, "List")
	if json.Unmarshal(item, &fields) != nil || fields == nil || fields["kind"] != nil || kind == "" {
		return item
	}
	for name, value := range map[string]string{"kind": kind, "apiVersion": apiVersion} {
		// A text can always be written.
		fields[name], _ = json.Marshal(value)
	}
	whole, err := json.Marshal(fields)
	if err != nil {
		return item
	}
	return whole
}

func (l *Linter) object(r *Report, place Place, text []byte, twice error) error {
	judgement, judged, err := l.Judge(text)
	switch {
	case judged && twice != nil:
		return twice
	case err != nil:
		return err
	case !judged:
		r.Ignored++
	default:
		r.Objects = append(r.Objects, Object{Place: place, Judgement: judgement})
	}
	return nil
}
