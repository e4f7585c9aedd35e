package dashboard

import "sync"

// maxCached bounds the parts of pages that are kept of a study.
const maxCached = 32

// cache keeps rendered parts of the pages of a study, so that any number of open pages
// costs one rendering. It is safe for concurrent use.
type cache struct {
	mu    sync.Mutex
	parts map[string]*part
}

// part is a part of a page at a state of its study.
type part struct {
	mu    sync.Mutex // held while it is made
	state string
	html  []byte
}

// get returns the part with a key at a state. It calls render if it has another state.
func (c *cache) get(key, state string, render func() ([]byte, error)) ([]byte, error) {
	c.mu.Lock()
	p := c.parts[key]
	if p == nil {
		if len(c.parts) >= maxCached {
			for other := range c.parts { // any
				delete(c.parts, other)
				break
			}
		}
		p = &part{}
		c.parts[key] = p
	}
	c.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.html != nil && p.state == state {
		return p.html, nil
	}
	html, err := render()
	if err != nil {
		return nil, err
	}
	p.state, p.html = state, html
	return html, nil
}
