// Package outline tells what a browser makes of a page, so that tests see whether text became
// a part of it.
package outline

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// addresses are the attributes that lead elsewhere or load something.
var addresses = []string{"href", "src", "srcset", "action", "formaction", "poster", "data", "xlink:href"}

// Of returns the elements of a page in order, with their depth and the names of their
// attributes. Two pages that differ only in text and in the values of attributes have the
// same outline. How a picture is drawn depends on how long its words are, so of a picture
// the outline has only that it is there.
//
// The error names what no page may have: an attribute that is a script or a style, a script or
// a style within the body, or an address that leads away from the server.
func Of(page string) ([]string, error) {
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return nil, err
	}
	var list []string
	for n := range root.Descendants() {
		if n.Type == html.CommentNode {
			return nil, fmt.Errorf("there is a comment: %.80q", n.Data)
		}
		if n.Type != html.ElementNode {
			continue
		}
		if err := check(n); err != nil {
			return nil, err
		}
		if n.Namespace == "svg" && n.Data != "svg" {
			continue
		}
		depth := 0
		for range n.Ancestors() {
			depth++
		}
		var names []string
		for _, a := range n.Attr {
			names = append(names, a.Key)
		}
		slices.Sort(names)
		list = append(list, fmt.Sprint(strings.Repeat(" ", depth), n.Data, names))
	}
	return list, nil
}

// check looks for what an element may not be or have.
func check(n *html.Node) error {
	switch strings.ToLower(n.Data) {
	case "script", "style":
		if n.Parent.Data != "head" || n.Data == "script" && n.FirstChild != nil {
			return fmt.Errorf("there is a %s in %s", n.Data, n.Parent.Data)
		}
	case "img", "iframe", "object", "embed", "base", "foreignobject":
		return fmt.Errorf("there is an element %s", n.Data)
	}
	for _, a := range n.Attr {
		if strings.HasPrefix(a.Key, "on") || a.Key == "style" && n.Namespace != "svg" {
			return fmt.Errorf("%s has the attribute %s=%q", n.Data, a.Key, a.Val)
		}
		if !slices.Contains(addresses, a.Key) || a.Val == "data:," {
			continue
		}
		if to, err := url.Parse(a.Val); err != nil || to.Scheme != "" || to.Host != "" || to.Opaque != "" {
			return fmt.Errorf("%s has the address %s=%q, which leads away", n.Data, a.Key, a.Val)
		}
	}
	return nil
}
