package design

// scramble returns the coordinate with the given leading 32 binary digits after Owen's
// nested uniform scrambling: a random bit, determined by the digits before it, decides
// whether each digit is flipped. The next 20 digits, which are 0 in the sequence,
// become uniformly random.
func scramble(x uint32, seed, dimension uint64) float64 {
	key := mix(seed ^ mix(dimension+1))
	var flips uint32
	for k := range 32 {
		// prefix is digits 1..k with a leading 1, which keeps prefixes of different
		// lengths apart.
		prefix := uint64(1)<<k | uint64(x)>>(32-k)
		flips = flips<<1 | uint32(mix(key^prefix)>>63)
	}
	tail := mix(key^(1<<32|uint64(x))) >> 44
	return float64(uint64(x^flips)<<20|tail) * 0x1p-52
}

// mix is the output function of SplitMix64 (Steele, Lea and Flood 2014): a
// bijection whose every output bit depends on every input bit.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
