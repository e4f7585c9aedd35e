package kubeforward

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// tokenLife is for how long a token of the cluster is requested; the cluster may shorten it.
const tokenLife = time.Hour

// Token requests a token of the service account from the cluster, by kubectl create token.
// The caller needs no other right in the cluster than to create serviceaccounts/token of this
// account.
func (c *Cluster) Token(ctx context.Context) (string, error) {
	namespace, err := c.namespace(ctx)
	if err != nil {
		return "", err
	}
	out, err := c.kubectl(ctx, "create", "token", c.Account, "--namespace="+namespace, "--audience="+c.Audience, "--duration="+tokenLife.String())
	token := strings.TrimSpace(string(out))
	if err == nil && token == "" {
		err = errors.New("the answer has none")
	}
	if err != nil {
		return "", fmt.Errorf("request a token of service account %s/%s: %w", namespace, c.Account, err)
	}
	return token, nil
}
