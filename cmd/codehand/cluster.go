package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"codehand/server/config"
	"codehand/server/nodes"
	"codehand/server/state"
	"codehand/tools/results"
)

func newCluster(t *terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "List and drain the machines that serve a team together, and move people",
		Long: `List the machines on which codehand serve shares a store in NATS (cluster.node),
let one take nobody more, and say where a principal works. Works on every machine
that reaches the store with the configuration of serve.`,
		Args: wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().String("config", "", "configuration file of serve to read instead of the user's")
	cmd.AddCommand(newClusterNodes(t), newClusterDrain(t), newClusterMove(t), newClusterForget(t))
	return cmd
}

// clusterTime bounds what a command does with the store, and how long drain waits.
const clusterTime = 45 * time.Second

// storeTime is how long the servers of NATS may take for one step: they look at each stream at first.
const storeTime = 6 * time.Second

// onCluster does something with the Store that the machines share.
func onCluster(cmd *cobra.Command, do func(ctx context.Context, s state.Store) error) error {
	cfg, _, err := load(cmd, nil) // warnings are about what serve does
	if err != nil {
		return &exitError{code: exitConfig, err: err, hint: "codehand serve --check"}
	}
	if cfg.Cluster.Node == "" {
		return &exitError{code: exitConfig, err: errors.New("cluster.node is not set: no machines share a store here"),
			hint: "give the configuration of serve with --config"}
	}
	return failed(withStore(cmd.Context(), cfg, do))
}

// withStore does something with the Store that machines share, without being one of them.
func withStore(ctx context.Context, cfg config.Config, do func(ctx context.Context, s state.Store) error) error {
	ctx, cancel := context.WithTimeout(ctx, clusterTime)
	defer cancel()
	o := cfg.StoreOptions()
	o.Impatient, o.Timeout = true, storeTime
	s, err := state.Open(ctx, cfg.Store.URL, o)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, s), s.Close())
}

// A clusterView is what `cluster nodes` prints.
type clusterView struct {
	Nodes  []nodes.Node  `json:"nodes"`
	Places []nodes.Owner `json:"places"`
}

func newClusterNodes(t *terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "List the machines, and who is served where",
		Long: `List the machines that work, and each principal with its machine. A machine that
is down is not listed; its principals are, and it is named after them.

Exit codes: 0 done, 1 the store cannot be read, 2 usage, 3 configuration.`,
		Args: wanted(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onCluster(cmd, func(ctx context.Context, s state.Store) error {
				v := clusterView{Nodes: []nodes.Node{}, Places: []nodes.Owner{}}
				live, err := nodes.Live(ctx, s)
				if err != nil {
					return err
				}
				owners, err := nodes.Owners(ctx, s)
				if err != nil {
					return err
				}
				v.Nodes, v.Places = append(v.Nodes, live...), append(v.Places, owners...)
				if asJSON {
					return t.printJSON(v)
				}
				return showCluster(t, v)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func showCluster(t *terminal, v clusterView) error {
	up := map[string]bool{}
	tw := tabwriter.NewWriter(t.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(tw, "NODE\tSTATE\tPRINCIPALS\tCAPACITY\tVERSION\tHOST\tSINCE")
	for _, n := range v.Nodes {
		up[n.Name] = true
		how := "up"
		if n.Draining {
			how = "draining"
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", printable(n.Name), how, n.Principals, n.Capacity,
			printable(n.Version), results.Line(printable(n.Host), 40), n.Since.UTC().Format("2006-01-02 15:04"))
	}
	if len(v.Places) > 0 {
		fmt.Fprintln(tw, "\nPRINCIPAL\tNODE\tSINCE")
	}
	for _, p := range v.Places {
		where := printable(p.Node)
		if !up[p.Node] {
			where += " (down)"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", results.Line(printable(p.Who), 40), where,
			p.Since.UTC().Format("2006-01-02 15:04"))
	}
	return tw.Flush()
}

func newClusterDrain(t *terminal) *cobra.Command {
	var end bool
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Let a machine take nobody more",
		Long: `Let a machine take nobody more: its /readyz answers 503, so balancers leave it
out, and new principals go to others. Those whose workspaces it has are still
served there, through the other machines; they are listed. With shared workspaces
they move to other machines as their calls end, within half a minute, and drain
waits for that. --end takes it back.

Exit codes: 0 done, 1 the store cannot be written, 2 usage, 3 configuration.`,
		Example: `  codehand cluster drain tools-2
  codehand cluster drain tools-2 --end`,
		Args: wanted(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := nodes.CheckName(args[0]); err != nil {
				return usage("codehand cluster nodes", "%q cannot be the name of a node: it %v", args[0], err)
			}
			return onCluster(cmd, func(ctx context.Context, s state.Store) error {
				if err := nodes.Drain(ctx, s, args[0], !end); err != nil || end {
					return err
				}
				left, err := nodes.Drained(ctx, s, args[0])
				if err != nil {
					return err
				}
				for _, who := range left {
					fmt.Fprintf(t.out, "stays there: %s\n", printable(who))
				}
				if len(left) == 0 {
					fmt.Fprintf(t.out, "%s serves nobody any more\n", printable(args[0]))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&end, "end", false, "let it take people again")
	return cmd
}

func newClusterMove(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "move PRINCIPAL NODE",
		Short: "Give a principal to another machine, after its files were taken there",
		Long: `Give a principal to another machine. Its files do not move by themselves: copy the
workspace first, while the principal does not work. Its sessions and commands on
the machine before are ended.

Exit codes: 0 done, 1 there is no such principal or machine, 2 usage, 3 configuration.`,
		Example: "  codehand cluster move alice tools-3",
		Args:    wanted(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onCluster(cmd, func(ctx context.Context, s state.Store) error {
				if err := nodes.Move(ctx, s, args[0], args[1]); err != nil {
					return fmt.Errorf("move %s to %s: %w", printable(args[0]), printable(args[1]), err)
				}
				fmt.Fprintf(t.out, "%s is served by %s\n", printable(args[0]), printable(args[1]))
				return nil
			})
		},
	}
}

func newClusterForget(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "forget PRINCIPAL",
		Short: "Take its machine from a principal; the next call gets another one",
		Long: `Take its machine from a principal, such as one that is lost for good. The next call
of the principal gets a machine anew, where its workspace begins empty.

Exit codes: 0 done, 1 no machine serves that principal, 2 usage, 3 configuration.`,
		Args: wanted(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onCluster(cmd, func(ctx context.Context, s state.Store) error {
				if err := nodes.Forget(ctx, s, args[0]); err != nil {
					return err
				}
				fmt.Fprintf(t.out, "%s has no machine any more\n", printable(args[0]))
				return nil
			})
		},
	}
}
