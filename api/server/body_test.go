package server_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/fantasia-hpo/fantasia/api/fantasia/v1/fantasiav1connect"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
)

// A body that breaks the rules of HTTP (RFC 9112, section 7.1) is a mistake of the caller: 400, not 500.
func TestBrokenBodies(t *testing.T) {
	address := serve(t, servertest.New(t), server.Options{})
	for name, body := range map[string]string{
		"a long extension": "2;" + strings.Repeat("a", 100_000) + "\r\n{}\r\n0\r\n\r\n",
		"no length":        "x\r\n{}\r\n0\r\n\r\n",
		"a huge length":    strings.Repeat("f", 17) + "\r\n{}\r\n0\r\n\r\n",
		"too short":        "1\r\n{}\r\n0\r\n\r\n",
	} {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%s",
			fantasiav1connect.StudyServiceListStudiesProcedure, address, body)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var said struct{ Code, Message string }
		if err := json.NewDecoder(answer.Body).Decode(&said); err != nil || answer.StatusCode != http.StatusBadRequest ||
			said.Code != "invalid_argument" || !strings.HasPrefix(said.Message, "the body of the request cannot be read: ") {
			t.Errorf("%s: %s, %+v, %v; want 400", name, answer.Status, said, err)
		}
		if err := errors.Join(answer.Body.Close(), connection.Close()); err != nil {
			t.Logf("%s: close: %v", name, err) // the server has closed it
		}
	}
}
