package main

import (
	"math/rand"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// copied makes a value of its own, with whole numbers as the server reads them.
func copied(value any) any {
	var out any
	check(utiljson.Unmarshal(encode(value), &out))
	return out
}

func copiedObject(value object) object {
	return copied(value).(object)
}

func pick[T any](r *rand.Rand, from ...T) T {
	return from[r.Intn(len(from))]
}

func chance(r *rand.Rand, percent int) bool {
	return r.Intn(100) < percent
}

// scalar is one of few, so that values meet again.
func scalar(r *rand.Rand) any {
	switch r.Intn(6) {
	case 0:
		return int64(r.Intn(4))
	case 1:
		return chance(r, 50)
	case 2:
		return float64(r.Intn(4)) + 0.5
	default:
		return pick(r, "a", "b", "c", "d")
	}
}

// document is any small value.
func document(r *rand.Rand, depth int) any {
	if depth == 0 || chance(r, 30) {
		if chance(r, 10) {
			return nil
		}
		return scalar(r)
	}
	if chance(r, 35) {
		list := []any{}
		for range r.Intn(4) {
			list = append(list, document(r, depth-1))
		}
		return list
	}
	return documentObject(r, depth)
}

func documentObject(r *rand.Rand, depth int) object {
	fields := object{}
	for range r.Intn(4) {
		fields[pick(r, "a", "b", "c", "x/y", "t~u")] = document(r, depth-1)
	}
	return fields
}

type raw []byte

func (r raw) MarshalJSON() ([]byte, error) { return r, nil }
