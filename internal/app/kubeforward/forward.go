package kubeforward

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime"
	"time"
)

// forward forwards a local port to a pod's, by kubectl port-forward, until done is called.
func (c *Cluster) forward(ctx context.Context, namespace string, pod target) (url string, done func(), err error) {
	calling, cancel := context.WithCancel(ctx)
	cmd, words, err := c.command(calling, "port-forward", "--namespace="+namespace, "--address=127.0.0.1", "pod/"+pod.name, fmt.Sprintf(":%d", pod.number))
	if err != nil {
		cancel()
		return "", nil, err
	}
	opened := &announcement{port: make(chan string, 1)}
	cmd.Stdout, cmd.SysProcAttr = opened, dieWithParent()
	var exit error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// Linux tells a program of the end of the thread that has started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		exit = cmd.Run()
	}()
	done = func() {
		cancel()
		<-ended
	}
	late := time.NewTimer(lookup)
	defer late.Stop()
	select {
	case local := <-opened.port:
		return pod.url(local), done, nil
	case <-ended:
		err = words.explain(ctx, exit)
	case <-late.C:
		err = fmt.Errorf("kubectl port-forward has not begun within %v", lookup)
	}
	done()
	return "", nil, advise(fmt.Errorf("forward to pod %s of namespace %s: %w", pod.name, namespace, err))
}

// forwarding is the line with which kubectl port-forward says its local port.
var forwarding = regexp.MustCompile(`Forwarding from 127\.0\.0\.1:([0-9]+) -> `)

// announcement reads the output of kubectl port-forward.
type announcement struct {
	port chan string // gets the local port, once
	text []byte      // until the port is known; nil afterwards
	said bool
}

// Write implements io.Writer. It never fails.
func (a *announcement) Write(p []byte) (int, error) {
	if a.said {
		return len(p), nil // a line for each connection
	}
	a.text = append(a.text, p...)
	if found := forwarding.FindSubmatch(a.text); found != nil {
		a.port <- string(found[1])
		a.said, a.text = true, nil
	}
	a.text = a.text[max(0, bytes.LastIndexByte(a.text, '\n')+1):]
	return len(p), nil
}
