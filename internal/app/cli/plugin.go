package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fantasia-hpo/fantasia/internal/app/kubeforward"
)

// pluginName is the name of the program by which kubectl finds it.
const pluginName = "kubectl-fantasia"

// IsPlugin reports whether the program was started by kubectl, as kubectl fantasia.
func IsPlugin(program string) bool {
	return strings.TrimSuffix(filepath.Base(program), ".exe") == pluginName
}

const pluginLong = `Shows the trials of a Study resource and what their programs wrote. STUDY is the
name of the resource in the namespace of -n, or else of kubectl's context.

It reaches the coordinators through the cluster's API server, like kubectl
port-forward, and needs the right to do that in their namespace. With --server
it calls them directly instead, and with --service-account it sends a token that
the cluster issues: then only rights in your own namespace are needed. Every flag can also be set in the environment:
--server as FANTASIA_SERVER, and so on.`

// plugin returns the root command of kubectl fantasia.
func (a *app) plugin() *cobra.Command {
	cluster := &kubeforward.Cluster{}
	r := &remote{cluster: cluster}
	a.disconnect = cluster.Close
	root := a.rootCommand(&cobra.Command{
		Use:         pluginName,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl fantasia"},
		Short:       "Show the trials of Study resources",
		Long:        pluginLong,
		Example: `  kubectl fantasia trials digits
  kubectl fantasia trial digits 7 -n team-a
  kubectl fantasia logs digits 7 --follow`,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	})
	r.flags(root)
	flags := root.PersistentFlags()
	flags.Lookup("server").DefValue = ""
	flags.Lookup("server").Usage = "`URL` of a coordinator (default: through the cluster's API server)"
	flags.StringVarP(&cluster.Namespace, "namespace", "n", "", "namespace of the study (default: that of the context)")
	flags.StringVar(&cluster.Kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: $KUBECONFIG, or ~/.kube/config)")
	flags.StringVar(&cluster.Context, "context", "", "context of the kubeconfig file (default: the current one)")
	flags.StringVar(&cluster.Account, "service-account", "", "`name` of the namespace's service account whose token is sent to the server "+
		"(default: --token)")
	flags.StringVar(&cluster.Audience, "audience", "fantasia", "audience of the service account's token, as the server expects it "+
		"(--oidc-audience)")
	for use, c := range map[string]*cobra.Command{
		"trials STUDY": newTrialListCommand(a, r), "trial STUDY TRIAL": newTrialGetCommand(a, r), "logs STUDY TRIAL": newTrialLogsCommand(a, r),
	} {
		// The texts of fantasia's own commands are about its servers and local studies.
		c.Use, c.Aliases, c.Long, c.Example, c.ValidArgsFunction = use, nil, "", "", cobra.NoFileCompletions
		root.AddCommand(c)
	}
	checkArguments(root)
	return root
}

// inCluster makes r call the coordinators of a study through the cluster's API server,
// unless their address was given, and returns the study's name in the ledger.
func (r *remote) inCluster(cmd *cobra.Command, resource string) (name string, err error) {
	if name, err = r.cluster.StudyName(resource); err != nil {
		return "", err
	}
	if _, err := studyName(cmd, name); err != nil {
		return name, err
	}
	if r.cluster.Account != "" {
		if r.caller.Token != "" || r.caller.TokenFile != "" {
			return name, usagef(cmd, "--service-account and --token or --token-file: set only one")
		}
		if r.caller.Token, err = r.cluster.Token(cmd.Context()); err != nil {
			return name, err
		}
	}
	if cmd.Flags().Changed("server") {
		return name, nil
	}
	r.server, err = r.cluster.Connect(cmd.Context(), name)
	return name, err
}
