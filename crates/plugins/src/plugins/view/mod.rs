//! Restricts a server block to queries for which all expressions are true.

use std::sync::Arc;

use config::options::{Manifest, Property, Usage};
use config::setup::{BlockFilter, Part, Setup, SetupError};
use engine::Query;

use common_plugins::shared::option_helpers::expression_of;
use common_plugins::shared::query_expression::{Names, QueryExpression, Values};

pub static MANIFEST: Manifest<Config> =
    Manifest::new("view", "select a server block by an expression on the query", Config::default, build)
        .arguments("view NAME", |config, args| {
            config.name = args.word()?.text.clone();
            Ok(())
        })
        .properties(&[Property {
            usage: Usage("expr EXPRESSION..."),
            default: "",
            doc: "An expression that must evaluate to true. If `expr` appears more than once, all must be true.",
            set: |config, args| {
                config.expressions.push(expression_of(args, Names::default())?);
                Ok(())
            },
        }])
        .settings(|config, settings| settings.view.clone_from(&config.name));

#[derive(Default)]
pub struct Config {
    name: String,
    expressions: Vec<QueryExpression>,
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let labels = setup.labels();
    for Config { name, mut expressions } in configs {
        expressions.iter_mut().for_each(|expression| expression.bind(&labels));
        let reads_client = expressions.iter().any(QueryExpression::reads_client);
        labels.publish("view/name", move |_| Some(name.clone()));
        let holds = move |query: &Query| expressions.iter().all(|expression| expression.is_true(query, Values::NONE));
        setup.below.provide(BlockFilter { accepts: Arc::new(holds), reads_client });
    }
    Ok(None)
}
