//! Picture of the flow of queries: clients → server blocks → plugins → upstreams. The width of a ribbon is a rate.
//!
//! The texts are lists of HTML, so that they can be read without the picture. Ribbons are drawn between the lists. On a
//! narrow screen the lists stand below each other without ribbons. No counter combines client and server block, so the
//! ribbons of all clients meet before they part again.

use core::fmt::Write;

use control::status::{Status, UpstreamState};
use control::text::{harmless, percent, rate, shortened};
use control::top::Top;
use maud::{Markup, html};

/// Maximum number of nodes in a column; the others share one.
const NODES_MAX: usize = 6;
/// Maximum number of clients.
const CLIENTS_MAX: usize = 5;
/// Height of a node in units of the picture, which are pixels without zoom. The style has the same height.
const NODE_HEIGHT: f64 = 56.0;
/// Width of the ribbon of all queries.
const WIDEST: f64 = 36.0;
/// Minimum width of a ribbon, so that it is visible.
const THINNEST: f64 = 1.0;
/// Width of the gap between two columns.
const GAP: f64 = 100.0;
/// Maximum number of characters of a name.
const NAME_MAX: usize = 36;
/// Plugin that asks upstreams.
const ASKING: &str = "forward";

/// Rate of the answers of a plugin in a server block.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// Index of the server block.
    pub(super) block: usize,
    pub(super) plugin: String,
    pub(super) per_second: f64,
    /// Part of it with SERVFAIL.
    pub(super) failing_per_second: f64,
}

/// Flow of queries.
#[derive(Default)]
pub(super) struct Flow {
    clients: Vec<Node>,
    blocks: Vec<Node>,
    plugins: Vec<Node>,
    upstreams: Vec<Node>,
    /// Ribbons from blocks to plugins.
    answered: Vec<Ribbon>,
    is_counted: bool,
}

/// Element of a column.
#[derive(Clone, Debug, Default)]
struct Node {
    name: String,
    /// Queries per second; `None` if nothing counts them.
    rate: Option<f64>,
    failing: f64,
    /// Trouble in words.
    trouble: Option<String>,
}

/// Ribbon between two columns, by the indices of its nodes.
#[derive(Clone, Copy, Debug)]
struct Ribbon {
    from: usize,
    to: usize,
    rate: f64,
    failing: f64,
}

impl Flow {
    /// Combines the largest clients, the keys of all server blocks, their answers by plugin, and the upstreams.
    pub(super) fn new(pods: &Top, blocks: &[String], shares: &[Share], status: &Status) -> Flow {
        let (block_nodes, block_places) = columns_of(blocks, |name, at| {
            let own = shares.iter().filter(|share| share.block == at);
            node(name, own)
        });
        let mut names: Vec<String> = shares.iter().map(|share| share.plugin.clone()).collect();
        host::sorting::sort_by(&mut names, Ord::cmp);
        names.dedup();
        let (plugins, plugin_places) =
            columns_of(&names, |name, _| node(name, shares.iter().filter(|share| share.plugin == name)));
        let mut answered: Vec<Ribbon> = Vec::new();
        for share in shares {
            let plugin = names.iter().position(|name| *name == share.plugin).unwrap_or_default();
            let (from, to) = (block_places[share.block], plugin_places[plugin]);
            let ribbon = Ribbon { from, to, rate: share.per_second, failing: share.failing_per_second };
            match answered.iter_mut().find(|known| (known.from, known.to) == (from, to)) {
                Some(known) => (known.rate, known.failing) = (known.rate + ribbon.rate, known.failing + ribbon.failing),
                None => answered.push(ribbon),
            }
        }
        host::sorting::sort_by_key(&mut answered, |ribbon| (ribbon.from, ribbon.to));
        let is_counted = status.answers.per_second.is_some();
        Flow {
            clients: clients(pods),
            blocks: block_nodes,
            plugins,
            upstreams: upstreams(status),
            answered,
            is_counted,
        }
    }
}

/// Returns the node of a block or a plugin with these answers.
fn node<'a>(name: &str, shares: impl Iterator<Item = &'a Share>) -> Node {
    let (rate, failing) =
        shares.fold((0.0, 0.0), |(rate, failing), share| (rate + share.per_second, failing + share.failing_per_second));
    let trouble =
        (failing > 0.0 && failing * 100.0 >= rate).then(|| format!("{:.0} % SERVFAIL", failing / rate * 100.0));
    Node { name: name.to_owned(), rate: Some(rate), failing, trouble }
}

/// Returns the nodes of a column, largest first, and for each name the index of its node. The last node combines those
/// that have no room.
fn columns_of(names: &[String], node: impl Fn(&str, usize) -> Node) -> (Vec<Node>, Vec<usize>) {
    let nodes: Vec<Node> = names.iter().enumerate().map(|(at, name)| node(name, at)).collect();
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    host::sorting::sort_by(&mut order, |one, other| rate_of(&nodes[*other]).total_cmp(&rate_of(&nodes[*one])));
    let shown = if nodes.len() > NODES_MAX { NODES_MAX - 1 } else { nodes.len() };
    let mut places = vec![shown; nodes.len()];
    for (place, at) in order.iter().take(shown).enumerate() {
        places[*at] = place;
    }
    let mut column: Vec<Node> = order.iter().take(shown).map(|at| nodes[*at].clone()).collect();
    let rest: Vec<&Node> = order.iter().skip(shown).map(|at| &nodes[*at]).collect();
    column.extend(combined(&rest));
    (column, places)
}

fn rate_of(node: &Node) -> f64 {
    node.rate.unwrap_or_default()
}

fn combined(rest: &[&Node]) -> Option<Node> {
    let troubled = rest.iter().filter(|node| node.trouble.is_some()).count();
    (!rest.is_empty()).then(|| Node {
        name: format!("{} others", rest.len()),
        rate: Some(rest.iter().map(|node| rate_of(node)).sum()),
        failing: rest.iter().map(|node| node.failing).sum(),
        trouble: (troubled > 0).then(|| format!("{troubled} with trouble")),
    })
}

fn clients(pods: &Top) -> Vec<Node> {
    let client = |row: &control::top::Row| Node {
        name: pods.cells(row).into_iter().next().unwrap_or_default(),
        rate: Some(row.counts.per_second),
        ..Node::default()
    };
    let mut nodes: Vec<Node> = pods.rows.iter().take(CLIENTS_MAX).map(client).collect();
    let rest = pods.total.per_second - nodes.iter().map(rate_of).sum::<f64>();
    if rest > pods.total.per_second / 1000.0 {
        nodes.push(Node { name: "all others".to_owned(), rate: Some(rest), ..Node::default() });
    }
    nodes
}

#[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
fn upstreams(status: &Status) -> Vec<Node> {
    let window = status.answers.window_seconds;
    let names: Vec<String> = status.upstreams.iter().map(|upstream| upstream.address.clone()).collect();
    let (mut nodes, _) = columns_of(&names, |name, at| {
        let upstream = &status.upstreams[at];
        let trouble = match upstream.state {
            UpstreamState::Up => None,
            UpstreamState::Suspected => Some("suspected".to_owned()),
            UpstreamState::Down => Some("down".to_owned()),
        };
        let rate = if window > 0.0 { upstream.replies as f64 / window } else { 0.0 };
        Node { name: name.to_owned(), rate: Some(rate), failing: 0.0, trouble }
    });
    // Nothing but its replies are counted, so that of an upstream without any has the width of nothing.
    for node in &mut nodes {
        node.failing = if node.trouble.is_some() { rate_of(node) } else { 0.0 };
    }
    nodes
}

/// Renders the picture.
pub(super) fn part(flow: &Flow) -> Markup {
    if !flow.is_counted {
        return html! { p.note { "Nothing counts the answers: no server block has " code { "prometheus" } "." } };
    }
    html! {
        p.note {
            "Queries per second of the last minute; the numbers of clients cover up to two. "
            "A bar is the share of all, and its red part failed."
        }
        .flow {
            (column("Clients", &flow.clients, "No queries"))
            (gap(flow, &merging(flow)))
            (column("Server blocks", &flow.blocks, "No server block"))
            (gap(flow, &answers(flow)))
            (column("Answered by", &flow.plugins, "No answers"))
            (gap(flow, &asking(flow)))
            (column("Upstreams", &flow.upstreams, "No upstreams"))
        }
    }
}

fn column(title: &str, nodes: &[Node], none: &str) -> Markup {
    let total: f64 = nodes.iter().map(rate_of).sum();
    html! {
        .stage {
            h3 { (title) }
            @if nodes.is_empty() { p.note { (none) } } @else {
                ol { @for node in nodes { (item(node, total)) } }
            }
        }
    }
}

fn item(node: &Node, total: f64) -> Markup {
    let width = |rate: f64| format!("{:.1}", if total > 0.0 { rate / total * GAP } else { 0.0 });
    html! {
        li {
            span.name { (shortened(&harmless(&node.name), NAME_MAX)) }
            span.note {
                (rate(rate_of(node)))
                @if total > 0.0 { " · " (percent(milli(rate_of(node)), milli(total))) " %" }
                @if let Some(trouble) = &node.trouble { " " strong.bad { "✗ " (trouble) } }
            }
            svg.bar viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
                rect width=(width(rate_of(node))) height="4" {}
                @if node.failing > 0.0 { rect.bad width=(width(node.failing)) height="4" {} }
            }
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a saturating cast of a rate")]
fn milli(rate: f64) -> u64 {
    (rate * 1000.0) as u64
}

/// Renders the ribbons between two columns. Paths have the shape of [`Curve`].
fn gap(flow: &Flow, curves: &[Curve]) -> Markup {
    let rows = [&flow.clients, &flow.blocks, &flow.plugins, &flow.upstreams].map(Vec::len).into_iter().max();
    let height = NODE_HEIGHT * number(rows.unwrap_or(1).max(1));
    html! {
        svg.ribbons viewBox=(format!("0 0 {GAP} {height}")) preserveAspectRatio="none" aria-hidden="true" {
            @for curve in curves { path.bad[curve.is_bad] d=(curve.path()) {} }
        }
    }
}

/// Returns a number of nodes, of which there are few.
fn number(nodes: usize) -> f64 {
    f64::from(u32::try_from(nodes).unwrap_or(u32::MAX))
}

/// Ribbon in a gap.
struct Curve {
    /// Left and right edge.
    x: [f64; 2],
    /// Upper end of the left and of the right edge.
    y: [f64; 2],
    width: f64,
    is_bad: bool,
}

impl Curve {
    fn path(&self) -> String {
        let Curve { x: [left, right], y: [from, to], width, .. } = self;
        let (middle, from_end, to_end) = ((left + right) / 2.0, from + width, to + width);
        let mut path = format!("M{left:.0} {from:.1}C{middle:.0} {from:.1} {middle:.0} {to:.1} {right:.0} {to:.1}");
        let _ = write!(path, "V{to_end:.1}C{middle:.0} {to_end:.1} {middle:.0} {from_end:.1} {left:.0} {from_end:.1}Z");
        path
    }
}

/// Positions at which ribbons leave or reach the nodes of a column, from top to bottom.
struct Ports {
    next: Vec<f64>,
}

impl Ports {
    /// Returns ports of nodes with ribbons of these widths in all, centred at each node.
    fn new(widths: &[f64]) -> Ports {
        let middle = |at: usize| NODE_HEIGHT * (number(at) + 0.5);
        Ports { next: widths.iter().enumerate().map(|(at, width)| middle(at) - width / 2.0).collect() }
    }

    fn take(&mut self, at: usize, width: f64) -> f64 {
        let Some(next) = self.next.get_mut(at) else { return 0.0 };
        *next += width;
        *next - width
    }
}

/// Returns the width of a rate, if all queries of a column together have the widest ribbon.
fn width(rate: f64, total: f64) -> f64 {
    if total > 0.0 && rate > 0.0 { (rate / total * WIDEST).max(THINNEST) } else { 0.0 }
}

fn widths(nodes: &[Node], total: f64) -> Vec<f64> {
    nodes.iter().map(|node| width(rate_of(node), total)).collect()
}

/// Returns the ribbons from clients to server blocks, which meet in the middle.
fn merging(flow: &Flow) -> Vec<Curve> {
    let total = |nodes: &[Node]| nodes.iter().map(rate_of).sum::<f64>();
    if total(&flow.clients) <= 0.0 || total(&flow.blocks) <= 0.0 {
        return Vec::new();
    }
    let (lefts, rights) = (widths(&flow.clients, total(&flow.clients)), widths(&flow.blocks, total(&flow.blocks)));
    let middle = flow.clients.len().min(flow.blocks.len().max(1));
    let trunk = number(middle) * NODE_HEIGHT / 2.0 - WIDEST / 2.0;
    let mut curves = side(&lefts, trunk, [0.0, GAP / 2.0], false);
    curves.extend(side(&rights, trunk, [GAP / 2.0, GAP], true));
    curves
}

/// Returns the ribbons between the nodes of one column and the trunk. `parts` is true from the trunk to the nodes.
fn side(widths: &[f64], trunk: f64, x: [f64; 2], parts: bool) -> Vec<Curve> {
    let mut ports = Ports::new(widths);
    let mut next = trunk;
    let mut curves = Vec::new();
    for (at, width) in widths.iter().copied().enumerate().filter(|(_, width)| *width > 0.0) {
        let (node, own) = (ports.take(at, width), next);
        next += width;
        curves.push(Curve { x, y: if parts { [own, node] } else { [node, own] }, width, is_bad: false });
    }
    curves
}

/// Returns the ribbons from server blocks to plugins. The failing part of each is a ribbon of its own.
fn answers(flow: &Flow) -> Vec<Curve> {
    let total: f64 = flow.answered.iter().map(|ribbon| ribbon.rate).sum();
    let of = |ribbon: &Ribbon| [(ribbon.rate - ribbon.failing, false), (ribbon.failing, true)];
    let sums = |count: usize, end: fn(&Ribbon) -> usize| {
        let mut sums = vec![0.0; count];
        for ribbon in &flow.answered {
            sums[end(ribbon)] += of(ribbon).map(|(rate, _)| width(rate, total)).iter().sum::<f64>();
        }
        Ports::new(&sums)
    };
    let mut lefts = sums(flow.blocks.len(), |ribbon| ribbon.from);
    let mut rights = sums(flow.plugins.len(), |ribbon| ribbon.to);
    let mut curves = Vec::new();
    for ribbon in &flow.answered {
        for (rate, is_bad) in of(ribbon) {
            let width = width(rate, total);
            if width > 0.0 {
                let y = [lefts.take(ribbon.from, width), rights.take(ribbon.to, width)];
                curves.push(Curve { x: [0.0, GAP], y, width, is_bad });
            }
        }
    }
    curves
}

/// Returns the ribbons from the plugin that asks upstreams.
fn asking(flow: &Flow) -> Vec<Curve> {
    let Some(plugin) = flow.plugins.iter().position(|node| node.name == ASKING) else { return Vec::new() };
    let total: f64 = flow.plugins.iter().map(rate_of).sum();
    // Refreshes of the cache ask upstreams too, so these rates may be larger than that of the plugin.
    let rates: Vec<f64> = flow.upstreams.iter().map(rate_of).collect();
    let total = total.max(rates.iter().sum());
    let widths: Vec<f64> = rates.iter().map(|rate| width(*rate, total).max(THINNEST)).collect();
    let mut lefts = Ports::new(&vec![0.0; flow.plugins.len()]);
    lefts.next[plugin] -= widths.iter().sum::<f64>() / 2.0;
    let mut rights = Ports::new(&widths);
    let curve = |(at, width): (usize, f64)| {
        let is_bad = flow.upstreams[at].trouble.is_some();
        Curve { x: [0.0, GAP], y: [lefts.take(plugin, width), rights.take(at, width)], width, is_bad }
    };
    widths.into_iter().enumerate().map(curve).collect()
}
