package cli

import (
	"strings"

	"github.com/spf13/cobra"

	fantasiav1 "github.com/fantasia-hpo/fantasia/api/fantasia/v1"
	"github.com/fantasia-hpo/fantasia/api/view"
	"github.com/fantasia-hpo/fantasia/coordinator/quota"
	"github.com/fantasia-hpo/fantasia/internal/base/each"
	"github.com/fantasia-hpo/fantasia/internal/show/layout"
)

func newQuotaCommand(a *app) *cobra.Command {
	r := &remote{}
	c := &cobra.Command{
		Use:     "quota",
		Short:   "Show the quotas of a server",
		Example: "  fantasia quota list",
	}
	r.flags(c)
	return group(c, newQuotaListCommand(a, r))
}

func newQuotaListCommand(a *app, r *remote) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List quotas, and how much of them is used",
		Long: `Lists your quotas, and how much of them is used. If your token is not limited to
some studies, it lists the quotas of all. STUDIES shows how the names of the studies
begin that count. streams and log-bytes are those at the leader, since the caller's
first call there.`,
	}
	return a.shows(c, func(cmd *cobra.Command, _ []string) (shown, error) {
		resp, err := ask(cmd, r, service.ListQuotas, &fantasiav1.ListQuotasRequest{})
		all := each.Of(resp.GetQuotas(), view.FromQuota)
		return shown{all, func(w screen) error { return quotaTable(w, all) }}, err
	})
}

// quotaTable prints a list of quotas.
func quotaTable(w screen, all []view.Quota) error {
	rows := make([][]string, len(all))
	for i, v := range all {
		name, limit := quota.Name(v.Quota), int64(quota.None)
		if v.Limit != nil {
			limit = *v.Limit
		}
		rows[i] = []string{v.Holder, v.Quota, name.Text(v.Used), name.Text(limit), orDash(strings.Join(v.Prefixes, ","))}
	}
	return w.table([]layout.Column{
		{Head: "HOLDER", Least: 12}, {Head: "QUOTA"}, {Head: "USED"}, {Head: "LIMIT"}, {Head: "STUDIES", Rank: 1, Least: 8},
	}, rows)
}
