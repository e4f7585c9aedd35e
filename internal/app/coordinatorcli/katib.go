package coordinatorcli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/base/lifecycle"
	"github.com/fantasia-hpo/fantasia/internal/exchange/katib"
	"github.com/fantasia-hpo/fantasia/telemetry"
)

// katibCloseTimeout is how long the last logs and traces may take.
const katibCloseTimeout = 10 * time.Second

func katibCommand(version string, stderr io.Writer) *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "katib-suggestion",
		Short: "Serve only Katib's Suggestion service, as Katib runs it for an Experiment",
		Long: `Serves Katib's Suggestion service (api.v1.beta1.Suggestion) and grpc.health.v1 over
unencrypted gRPC. It needs neither etcd nor NATS and keeps nothing: each request of
Katib carries the Experiment with all of its trials. Katib starts this command as a
Deployment for each Experiment whose algorithm its configuration maps to this image.`,
		Example: `  coordinator katib-suggestion --listen ` + katib.Address,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			var stack lifecycle.Stack
			defer func() { err = errors.Join(err, stack.Close(katibCloseTimeout)) }()
			tel, err := telemetry.Setup(cmd.Context(), telemetry.Options{Service: "fantasia-katib-suggestion", Version: version, Logs: stderr})
			if err != nil {
				return fmt.Errorf("set up telemetry: %w", err)
			}
			stack.Push("telemetry", tel.Shutdown)
			listener, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("listen for Katib: %w", err)
			}
			return katib.Serve(cmd.Context(), listener, tel.Logger())
		},
	}
	cmd.Flags().StringVar(&listen, "listen", katib.Address, "where to serve")
	return cmd
}
