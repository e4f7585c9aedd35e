// Command peer stands in for the pods of a release in the test of NetworkPolicies.
//
//	peer listen PORT …   accepts connections on the ports until SIGTERM
//	peer call ADDRESS …  connects to each address, and prints those that answered
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// patience is how long a connection may take. Packets that a policy drops are never
// answered.
const patience = 5 * time.Second

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "peer: want listen PORT … or call ADDRESS …")
		os.Exit(2)
	}
	var err error
	switch verb, args := os.Args[1], os.Args[2:]; verb {
	case "listen":
		err = listen(args)
	case "call":
		call(args)
	default:
		err = fmt.Errorf("%q: want listen or call", verb)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

// listen accepts connections on the ports, and closes each at once, until SIGTERM.
func listen(ports []string) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	for _, port := range ports {
		l, err := net.Listen("tcp", ":"+port)
		if err != nil {
			return fmt.Errorf("port %s: %w", port, err)
		}
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_ = conn.Close()
			}
		}()
	}
	<-stop
	return nil
}

// call prints the addresses that answer.
func call(addresses []string) {
	open := make([]bool, len(addresses))
	var all sync.WaitGroup
	for i, address := range addresses {
		all.Go(func() {
			conn, err := net.DialTimeout("tcp", address, patience)
			if err == nil {
				open[i] = conn.Close() == nil
			}
		})
	}
	all.Wait()
	for i, address := range addresses {
		if open[i] {
			fmt.Println(address)
		}
	}
}
