// Command oracle writes the vectors that the tests of this crate replay: generated patches and applies with what
// Kubernetes' own libraries make of them. Everything is made from a seed, so that the same command writes the same files:
//
//	go run . -seed 1 -out ../vectors
//
// A larger -scale with another seed looks further than what is kept.
package main

import (
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
)

func main() {
	seed := flag.Int64("seed", 1, "what the cases are made from")
	out := flag.String("out", "../vectors", "the folder to write to")
	flag.IntVar(&scale, "scale", 100, "how many cases, in percent of what the tests keep")
	flag.Parse()
	files := []struct {
		name  string
		write func(*rand.Rand, *sink)
	}{
		{"json_patch.jsonl.gz", jsonPatches},
		{"merge_patch.jsonl.gz", mergePatches},
		{"strategic.jsonl.gz", strategicPatches},
		{"custom.jsonl.gz", customApplies},
		{"builtin.jsonl.gz", builtinApplies},
	}
	for _, file := range files {
		s := create(filepath.Join(*out, file.name))
		file.write(rand.New(rand.NewSource(*seed)), s)
		s.close()
		fmt.Fprintf(os.Stderr, "%s: %d\n", file.name, s.count)
	}
}

type object = map[string]any

var scale int

func scaled(count int) int { return count * scale / 100 }

// A sink takes one vector a line.
type sink struct {
	file   *os.File
	writer *gzip.Writer
	count  int
}

func create(path string) *sink {
	file, err := os.Create(path)
	check(err)
	writer, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	check(err)
	return &sink{file: file, writer: writer}
}

func (s *sink) put(vector any) {
	encoder := json.NewEncoder(s.writer)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(vector))
	s.count++
}

func (s *sink) close() {
	check(s.writer.Close())
	check(s.file.Close())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	check(err)
	return text
}
