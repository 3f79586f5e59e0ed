//! Dashboards in Grafana's JSON model.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Board, NOTE, Panel};
use xtask::Failed;

/// Width of the grid of a dashboard.
const COLUMNS: usize = 24;
/// Panels in a line.
const PER_LINE: usize = 3;
/// Height of a panel in units of the grid.
const HEIGHT: usize = 7;

/// Selector that the variables of a dashboard fill.
const SELECTOR: &str = "cluster=~\"$cluster\",job=~\"$job\",instance=~\"$instance\"";

/// Returns the JSON of a dashboard.
pub(super) fn dashboard(board: &Board<'_>) -> Result<String, Failed> {
    let model = json!({
        "uid": format!("portolan-{}", board.name),
        "title": board.title,
        "description": board.summary,
        "tags": ["portolan", "dns"],
        "schemaVersion": 38,
        "editable": true,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "links": [{"type": "dashboards", "title": "Portolan", "tags": ["portolan"], "asDropdown": false,
            "includeVars": true, "keepTime": true}],
        "templating": {"list": variables()},
        "panels": panels(board),
    });
    serde_json::to_string_pretty(&model).map(|text| text + "\n").map_err(|error| error.to_string())
}

/// Returns the ConfigMaps with the dashboards. The sidecar of Grafana's chart finds them by their label.
pub(super) fn config_maps(boards: &[Board<'_>]) -> Result<String, Failed> {
    let mut text = NOTE.to_owned();
    for board in boards {
        let name = board.name;
        let _ = write!(
            text,
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: portolan-dashboard-{name}\n  namespace: kube-system\n  \
             labels:\n    grafana_dashboard: \"1\"\ndata:\n  portolan-{name}.json: |\n"
        );
        for line in dashboard(board)?.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    Ok(text)
}

fn variables() -> Value {
    let query = |name: &str, expression: &str| {
        json!({
            "name": name, "type": "query", "label": name, "query": expression, "definition": expression, "refresh": 2,
            "datasource": source(), "includeAll": true, "multi": true, "allValue": ".*", "sort": 1,
            "current": {"text": "All", "value": "$__all"},
        })
    };
    json!([
        {"name": "datasource", "type": "datasource", "label": "data source", "query": "prometheus", "refresh": 1},
        // A label that is added where the metrics of several clusters come together. `All` matches series without it.
        query("cluster", "label_values(portolan_limit_hits_total, cluster)"),
        query("job", "label_values(portolan_limit_hits_total{cluster=~\"$cluster\"}, job)"),
        query("instance", "label_values(portolan_limit_hits_total{cluster=~\"$cluster\",job=~\"$job\"}, instance)"),
    ])
}

fn source() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

/// Places the panels in lines, and each row title above its panels.
fn panels(board: &Board<'_>) -> Vec<Value> {
    let (mut placed, mut top, mut id) = (Vec::new(), 0, 0);
    for row in &board.rows {
        id += 1;
        placed.push(json!({"id": id, "type": "row", "title": row.title, "collapsed": false, "panels": [],
            "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1}}));
        top += 1;
        for (at, panel) in row.panels.iter().enumerate() {
            id += 1;
            let width = COLUMNS / PER_LINE;
            let grid = json!({"x": at % PER_LINE * width, "y": top + at / PER_LINE * HEIGHT, "w": width, "h": HEIGHT});
            placed.push(graph(panel, id, &grid));
        }
        top += row.panels.len().div_ceil(PER_LINE) * HEIGHT;
    }
    placed
}

fn graph(panel: &Panel<'_>, id: usize, grid: &Value) -> Value {
    let targets: Vec<Value> = panel
        .queries
        .iter()
        .enumerate()
        .map(|(at, (expression, legend))| {
            json!({"refId": reference(at), "expr": filled(expression), "legendFormat": legend, "datasource": source()})
        })
        .collect();
    json!({
        "id": id,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.help,
        "gridPos": grid,
        "datasource": source(),
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "custom": {"fillOpacity": 8, "showPoints": "never"}},
            "overrides": [],
        },
        "options": {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": true},
            "tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": targets,
    })
}

/// Returns the letter of a query within its panel.
fn reference(at: usize) -> String {
    ["A", "B", "C", "D"].get(at).copied().unwrap_or("E").to_owned()
}

fn filled(expression: &str) -> String {
    expression.replace("$S", SELECTOR).replace("$W", "$__rate_interval")
}
