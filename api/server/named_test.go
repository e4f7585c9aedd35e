package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/server"
	"github.com/fantasia-hpo/fantasia/internal/test/servertest"
)

// An error calls a study as the caller did, whatever the call: people give studies names, and have never seen
// the ids under which they are stored.
func TestErrorsNameStudiesAsCallersDo(t *testing.T) {
	ctx, backend := within(t), servertest.New(t)
	create(t, backend, "digits")
	address := serve(t, backend, server.Options{})
	refused := 0
	for _, service := range []string{"StudyService"} {
		methods := fantasiav1.File_fantasia_v1_fantasia_proto.Services().ByName(protoreflect.Name(service)).Methods()
		for i := range methods.Len() {
			m := methods.Get(i)
			if m.IsStreamingServer() || m.Name() == "DeleteStudy" || m.Name() == "StopStudy" || m.Name() == "ArchiveStudy" {
				continue // it would succeed, or has another protocol
			}
			for _, about := range []string{"studies/digits", "studies/digits/trials/9"} {
				body := map[string]any{}
				for field, value := range map[string]any{
					"name": about, "parent": about, "clientId": "c", "step": 1, "metrics": map[string]any{"loss": 1}, "values": []any{1},
					"trials": []any{9},
					"count":  1, "note": "n", "wait": "0.01s",
				} {
					if m.Input().Fields().ByJSONName(field) != nil {
						body[field] = value
					}
				}
				text, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				url := "http://" + address + "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(resp.Body)
				if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
				if err != nil || resp.StatusCode == http.StatusOK {
					continue
				}
				refused++
				if strings.Contains(string(answer), "ID1") {
					t.Errorf("%s of %s: %s", m.Name(), about, answer)
				}
			}
		}
	}
	if refused < 15 {
		t.Errorf("only %d calls were refused", refused)
	}
}
