package main

import (
	"fmt"
	"math/rand"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// pointers are the places of a document.
func pointers(value any, prefix string, into *[]string) {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	switch typed := value.(type) {
	case object:
		for _, name := range []string{"a", "b", "c", "x/y", "t~u"} {
			if field, ok := typed[name]; ok {
				place := prefix + "/" + escape.Replace(name)
				*into = append(*into, place)
				pointers(field, place, into)
			}
		}
	case []any:
		for index, item := range typed {
			place := fmt.Sprintf("%s/%d", prefix, index)
			*into = append(*into, place)
			pointers(item, place, into)
		}
	}
}

func pointer(r *rand.Rand, target any) string {
	places := []string{}
	pointers(target, "", &places)
	if len(places) == 0 || chance(r, 25) {
		return pick(r, "/a", "/b/c", "/new", "/a/0", "/a/-", "/a/-1", "/c/9", "/a/x", "/a/+1", "", "a", "a/b", "/x~1y", "/t~0u/a")
	}
	place := pick(r, places...)
	if chance(r, 20) {
		place += pick(r, "/new", "/-", "/0", "/-1", "/7")
	}
	return place
}

// at is what a pointer leads to, where it does.
func at(target any, place string) any {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, part := range strings.Split(place, "/")[1:] {
		switch typed := target.(type) {
		case object:
			target = typed[unescape.Replace(part)]
		case []any:
			var index int
			if _, err := fmt.Sscanf(part, "%d", &index); err != nil || index < 0 || index >= len(typed) {
				return nil
			}
			target = typed[index]
		default:
			return nil
		}
	}
	return target
}

func jsonPatches(r *rand.Rand, s *sink) {
	for range scaled(800) {
		target := copied(documentObject(r, 3))
		patch := []any{}
		for range 1 + r.Intn(3) {
			place := pointer(r, target)
			operation := object{"op": pick(r, "add", "add", "remove", "replace", "replace", "move", "copy", "test", "test", "frob"), "path": place}
			switch operation["op"] {
			case "add", "replace":
				if place == "" && operation["op"] == "replace" && chance(r, 80) {
					operation["value"] = documentObject(r, 2)
				} else if chance(r, 97) {
					operation["value"] = document(r, 2)
				}
			case "move", "copy":
				if chance(r, 97) {
					operation["from"] = pointer(r, target)
				}
			case "test":
				if place != "" && chance(r, 70) {
					operation["value"] = at(target, place)
				} else {
					operation["value"] = document(r, 1)
				}
			}
			if chance(r, 2) {
				delete(operation, "path")
			}
			patch = append(patch, operation)
		}
		vector := object{"t": target, "p": copied(patch)}
		if record(vector, func() ([]byte, error) {
			decoded, err := jsonpatch.DecodePatch(encode(patch))
			if err != nil {
				return nil, err
			}
			return decoded.Apply(encode(target))
		}) {
			s.put(vector)
		}
	}
}

func mergePatches(r *rand.Rand, s *sink) {
	for range scaled(300) {
		target, patch := documentObject(r, 3), documentObject(r, 3)
		vector := object{"t": target, "p": patch}
		if record(vector, func() ([]byte, error) { return jsonpatch.MergePatch(encode(target), encode(patch)) }) {
			s.put(vector)
		}
	}
}

// record files the outcome; a library that falls over has none.
func record(vector object, run func() ([]byte, error)) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	result, err := run()
	if err != nil {
		vector["e"] = err.Error()
	} else {
		vector["r"] = copied(raw(result))
	}
	return true
}
