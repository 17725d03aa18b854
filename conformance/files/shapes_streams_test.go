package files

import "strings"

// whole is a stream of three entries and one that was deleted, with nothing wrong.
func whole() streamOf {
	return streamOf{
		blocks: []string{rawID(1, 0), block(2, 1, entry{2, 0, "a"}, entry{3, 1, "b"}, entry{2, 2, "c"}), rawID(5, 0), block(1, 0, entry{2, 0, "d"})},
		length: 3, last: 5, first: 1, deleted: 2, added: 4,
		groups: []string{group(3, 3, []uint64{1, 3}, consumer("one", 1), consumer("two", 3))},
	}
}

func streams() []shape {
	with := func(name string, o outcome, repaired bool, change func(s *streamOf), here map[string]string) shape {
		s := whole()
		change(&s)
		unasked := ""
		if strings.HasPrefix(name, "a pending entry without") || strings.HasPrefix(name, "a pending entry and no") {
			unasked = "XPENDING k g - + 10"
		}
		return shape{"stream: " + name, 21, s.body(21), o, repaired, here, unasked}
	}
	old := whole()
	old.length, old.groups = 120, nil
	older := old.body(15)
	old.length = 3
	return []shape{
		with("whole", served, false, func(*streamOf) {}, nil),
		{"stream: type 15", 15, old.body(15), served, false, nil, ""},
		{"stream: type 15, a length too large", 15, older, served, true, map[string]string{"XLEN k": ":3", "length": ":3", "entries-added": ":3"}, ""},
		with("a length too large", served, true, func(s *streamOf) { s.length = 120; s.added = 120 },
			map[string]string{"XLEN k": `:3`, "length": `:3`}),
		with("a length too small", served, true, func(s *streamOf) { s.length = 1 },
			map[string]string{"XLEN k": `:3`, "length": `:3`}),
		with("a length of 0", served, true, func(s *streamOf) { s.length = 0 },
			map[string]string{"XLEN k": `:3`, "length": `:3`, "XINFO GROUPS k": `[["name", "g", "consumers", :2, "pending", :2, "last-delivered-id", "3-0", "entries-read", :3, "lag", :1]]`}),
		with("a length and no blocks", refused, false, func(s *streamOf) { s.blocks = nil }, nil),
		with("an entry after the last ID", served, true, func(s *streamOf) { s.last = 3 },
			map[string]string{"last-generated-id": `"5-0"`}),
		with("blocks out of order", served, true, func(s *streamOf) { s.blocks = append(s.blocks[2:4:4], s.blocks[:2]...) }, nil),
		with("a block twice", refused, false, func(s *streamOf) { s.blocks = append(s.blocks, s.blocks[2:]...) }, nil),
		with("a block's entries too many", served, true, func(s *streamOf) {
			s.blocks[1] = block(7, 1, entry{2, 0, "a"}, entry{3, 1, "b"}, entry{2, 2, "c"})
		}, nil),
		with("a block's deleted too many", served, true, func(s *streamOf) {
			s.blocks[1] = block(2, 9, entry{2, 0, "a"}, entry{3, 1, "b"}, entry{2, 2, "c"})
		}, nil),
		with("a block's number of elements", served, true, func(s *streamOf) { s.blocks[1] = saying(3, s.blocks[1]) }, nil),
		with("a block without entries", served, true, func(s *streamOf) { s.blocks = append(s.blocks, rawID(9, 0), block(0, 0)); s.last = 9 },
			map[string]string{"radix-tree-keys": `:2`, "radix-tree-nodes": `:6`}),
		with("a block of deleted entries", served, true, func(s *streamOf) {
			s.blocks = append(s.blocks, rawID(9, 0), block(0, 1, entry{3, 0, "x"}))
			s.last = 9
		},
			map[string]string{"radix-tree-keys": `:2`, "radix-tree-nodes": `:6`}),
		with("entries out of order in a block", served, true, func(s *streamOf) {
			s.blocks[1] = block(3, 0, entry{2, 2, "c"}, entry{2, 0, "a"}, entry{2, 1, "b"})
			s.length = 4
		},
			map[string]string{"radix-tree-keys": `:1`, "radix-tree-nodes": `:2`, "first-entry": `["1-0", ["f", "a"]]`, "XRANGE k - +": `[["1-0", ["f", "a"]], ["2-0", ["f", "b"]], ["3-0", ["f", "c"]], ["5-0", ["f", "d"]]]`, "XREVRANGE k + -": `[["5-0", ["f", "d"]], ["3-0", ["f", "c"]], ["2-0", ["f", "b"]], ["1-0", ["f", "a"]]]`}),
		with("entries of blocks that overlap", served, true, func(s *streamOf) {
			s.blocks[1] = block(3, 0, entry{2, 0, "a"}, entry{2, 1, "b"}, entry{2, 7, "z"})
			s.length, s.last = 4, 8
		},
			map[string]string{"radix-tree-keys": `:1`, "radix-tree-nodes": `:2`, "last-entry": `["8-0", ["f", "z"]]`, "XRANGE k - +": `[["1-0", ["f", "a"]], ["2-0", ["f", "b"]], ["5-0", ["f", "d"]], ["8-0", ["f", "z"]]]`, "XREVRANGE k + -": `[["8-0", ["f", "z"]], ["5-0", ["f", "d"]], ["2-0", ["f", "b"]], ["1-0", ["f", "a"]]]`}),
		with("an ID twice", served, true, func(s *streamOf) {
			s.blocks[1] = block(3, 0, entry{2, 0, "a"}, entry{2, 0, "b"}, entry{2, 2, "c"})
			s.length = 4
		},
			map[string]string{"radix-tree-keys": `:1`, "radix-tree-nodes": `:2`, "XLEN k": `:3`, "length": `:3`, "XRANGE k - +": `[["1-0", ["f", "a"]], ["3-0", ["f", "c"]], ["5-0", ["f", "d"]]]`, "XREVRANGE k + -": `[["5-0", ["f", "d"]], ["3-0", ["f", "c"]], ["1-0", ["f", "a"]]]`}),
		with("an entry before its block", served, true, func(s *streamOf) {
			s.blocks[3] = block(1, 0, entry{2, -1, "d"})
		},
			map[string]string{"radix-tree-keys": `:1`, "radix-tree-nodes": `:2`}),
		with("half an entry", deadly, false, func(s *streamOf) { s.blocks[1] = listpack(1, 0, 1, "f", 0, 2, 0) }, nil),
		with("no entries but something", deadly, false, func(s *streamOf) { s.blocks[1] = listpack("x", "y") }, nil),
		with("an empty listpack", refused, false, func(s *streamOf) { s.blocks[1] = listpack() }, nil),
		with("no listpack", refused, false, func(s *streamOf) { s.blocks[1] = "no listpack" }, nil),
		with("a key of another length", refused, false, func(s *streamOf) { s.blocks[0] = "short" }, nil),
		with("the first ID wrong", served, false, func(s *streamOf) { s.first = 3 },
			map[string]string{"recorded-first-entry-id": `"1-0"`}),
		with("the deleted ID after the last", served, true, func(s *streamOf) { s.deleted = 77 },
			map[string]string{"max-deleted-entry-id": `"5-0"`}),
		with("fewer entries ever than there are", served, true, func(s *streamOf) { s.added = 2 },
			map[string]string{"entries-added": `:3`, "XINFO GROUPS k": `[["name", "g", "consumers", :2, "pending", :2, "last-delivered-id", "3-0", "entries-read", :3, "lag", :0]]`}),
		with("entries ever beyond numbers", served, true, func(s *streamOf) { s.added = 1 << 63 },
			map[string]string{"entries-added": `:3`, "XINFO GROUPS k": `[["name", "g", "consumers", :2, "pending", :2, "last-delivered-id", "3-0", "entries-read", :3, "lag", :0]]`}),
		with("a pending entry without a consumer", served, true, func(s *streamOf) {
			s.groups = []string{group(3, 3, []uint64{1, 3}, consumer("one", 1))}
		},
			map[string]string{"XINFO GROUPS k": `[["name", "g", "consumers", :2, "pending", :2, "last-delivered-id", "3-0", "entries-read", :3, "lag", :1]]`, "XPENDING k g - + 10": `[["1-0", "one", :1], ["3-0", "", :1]]`, "XINFO CONSUMERS k g": `[["name", "", "pending", :1], ["name", "one", "pending", :1]]`, "XPENDING k g": `[:2, "1-0", "3-0", [["", "1"], ["one", "1"]]]`}),
		with("a pending entry and no consumers", served, true, func(s *streamOf) { s.groups = []string{group(3, 3, []uint64{1, 3})} },
			map[string]string{"XINFO GROUPS k": `[["name", "g", "consumers", :1, "pending", :2, "last-delivered-id", "3-0", "entries-read", :3, "lag", :1]]`, "XPENDING k g - + 10": `[["1-0", "", :1], ["3-0", "", :1]]`, "XINFO CONSUMERS k g": `[["name", "", "pending", :2]]`, "XPENDING k g": `[:2, "1-0", "3-0", [["", "2"]]]`}),
		with("a pending entry of two consumers", served, true, func(s *streamOf) {
			s.groups = []string{group(3, 3, []uint64{1, 3}, consumer("one", 1, 3), consumer("two", 3))}
		},
			map[string]string{"XINFO CONSUMERS k g": `[["name", "one", "pending", :1], ["name", "two", "pending", :1]]`, "XPENDING k g": `[:2, "1-0", "3-0", [["one", "1"], ["two", "1"]]]`}),
		with("a pending entry twice", refused, false, func(s *streamOf) {
			s.groups = []string{group(3, 3, []uint64{1, 3, 1}, consumer("one", 1), consumer("two", 3))}
		}, nil),
		with("an entry that is not pending", refused, false, func(s *streamOf) {
			s.groups = []string{group(3, 3, []uint64{1}, consumer("one", 1), consumer("two", 3))}
		}, nil),
		with("a pending entry that is gone", served, false, func(s *streamOf) {
			s.groups = []string{group(3, 3, []uint64{2, 4}, consumer("one", 2), consumer("two", 4))}
		}, nil),
		with("a consumer twice", refused, false, func(s *streamOf) { s.groups = []string{group(3, 3, nil, consumer("one"), consumer("one"))} }, nil),
		with("a group twice", refused, false, func(s *streamOf) { s.groups = append(s.groups, s.groups[0]) }, nil),
		with("a group after the last ID", served, false, func(s *streamOf) { s.groups = []string{group(99, 3, nil)} }, nil),
		with("a group that has read more than there is", served, false, func(s *streamOf) { s.groups = []string{group(3, 99, nil)} }, nil),
		with("a group that has read less than nothing", served, true, func(s *streamOf) { s.groups = []string{group(3, 1<<64-5, nil)} },
			map[string]string{"XINFO GROUPS k": `[["name", "g", "consumers", :0, "pending", :0, "last-delivered-id", "3-0", "entries-read", $-1, "lag", $-1]]`}),
	}
}
