package testenv

import "testing"

func TestPortsOfTwoBlocksDiffer(t *testing.T) {
	var a, b block
	taken := map[int]bool{}
	for _, blk := range []*block{&a, &b} {
		for range 10 {
			port, err := blk.next()
			if err != nil {
				t.Fatal(err)
			}
			if taken[port] {
				t.Errorf("port %d was handed out twice", port)
			}
			taken[port] = true
		}
		defer func() { _ = blk.lock.Close() }()
	}
}

func TestPortInUseIsSkipped(t *testing.T) {
	var b block
	first, err := b.next()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.lock.Close() }()
	l, err := listen(first + 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if second, err := b.next(); err != nil || second != first+2 {
		t.Errorf("after %d, with %d in use: %d, %v", first, first+1, second, err)
	}
	for range blockPorts - 4 {
		if again, err := b.next(); err != nil || again == first+1 || again == b.first {
			t.Fatalf("%d, %v: in use", again, err)
		}
	}
	if again, err := b.next(); err != nil || again != first {
		t.Errorf("after all others: %d, %v; want %d again", again, err, first)
	}
}
