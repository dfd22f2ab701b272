use super::*;

fn built_in() -> Prices {
    Prices::new(BTreeMap::new())
}

fn used(model: &str, tokens: [u64; 5]) -> Usage {
    let mut usage = Usage::default();
    usage.model = Some(model.to_owned());
    [usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, ..] = tokens;
    [.., usage.cache_write_tokens, usage.cache_write_1h_tokens] = tokens;
    usage
}

#[test]
fn a_model_is_found_by_its_name_with_or_without_a_date() {
    let prices = built_in();
    for name in [
        "claude-sonnet-4-5",
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4-5@20250929",
        "anthropic/claude-sonnet-4-5",
        "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "claude-sonnet-4-5-latest",
        "claude-sonnet-4-5-20250929[1m]",
        "claude-sonnet-4.5",
        "Claude-Sonnet-4-5",
        "openrouter/anthropic/claude-sonnet-4.5",
    ] {
        assert_eq!(prices.of(name).map(|p| p.input), Some(3.0), "{name}");
    }
    assert_eq!(prices.of("gpt-4o-2024-08-06").map(|p| p.output), Some(10.0));
    assert_eq!(prices.of("openai/gpt-5.1-codex-mini").map(|p| p.output), Some(2.0));
    assert_eq!(prices.of("moonshotai/Kimi-K2.5").map(|p| p.input), Some(0.6));
}

#[test]
fn an_unknown_model_has_no_price() {
    for name in [
        "",
        "claude",
        "claude-sonnet-9",
        "claude-sonnet-4-5-turbo",
        "gpt-5.1-ü2025110",
        "<synthetic>",
        "/",
        "-",
        ".",
    ] {
        assert_eq!(built_in().of(name), None, "{name}");
    }
}

#[test]
fn the_users_price_wins_and_names_what_is_unknown() {
    let own = Price { input: 1.0, output: 2.0, ..Price::default() };
    let prices = Prices::new(BTreeMap::from([
        ("gpt-5".to_owned(), own.clone()),
        ("House-Model".to_owned(), own.clone()),
    ]));
    assert_eq!(prices.of("gpt-5-2025-08-07").as_ref(), Some(&own));
    assert_eq!(prices.of("House-Model").as_ref(), Some(&own));
}

#[test]
fn the_table_covers_what_agents_run() {
    let prices = built_in();
    for name in [
        "claude-opus-4.6",
        "claude-opus-4-0",
        "us.anthropic.claude-opus-4-6-v1",
        "claude-haiku-4-5-20251001",
        "claude-opus-5-5",
        "claude-3-7-sonnet-20250219",
        "gpt-5.4",
        "gpt-5.3-codex",
        "gpt-5-mini",
        "gemini-2.5-pro",
        "google/gemini-3.1-pro-preview",
        "kimi-k3",
        "glm-4.7",
        "zai-org/GLM-5",
        "deepseek-chat",
        "deepseek/deepseek-v3.2",
        "qwen3-coder-plus",
        "x-ai/grok-code-fast-1",
        "MiniMax-M2.5",
    ] {
        assert!(prices.of(name).is_some(), "{name}");
    }
}

#[test]
fn the_table_is_sorted_and_sane() {
    let prices = built_in();
    let table = prices.table();
    assert!(deloop_types::Millis::parse(&format!("{}T00:00:00Z", table.date())).is_some());
    assert!(table.source().starts_with("litellm "), "{}", table.source());
    let rows: Vec<PriceRow> = table.rows().collect();
    let lines = table.to_text().lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(rows.len(), lines, "every line is a price");
    assert!(rows.len() > 300, "{}", rows.len());
    assert!(rows.is_sorted_by(|a, b| a.name < b.name));
    for PriceRow { name, price } in &rows {
        assert_eq!(table.find(name).as_ref(), Some(price), "{name}");
        assert_eq!(*name, name.to_lowercase());
        assert!(price.input > 0.0 && price.output > 0.0 && price.output <= 1000.0, "{name}");
        assert!(price.long_prompts.is_sorted_by(|a, b| a.above < b.above), "{name}");
    }
}

#[test]
fn a_table_that_was_changed_by_hand_is_searched_without_harm() {
    for text in ["", "#", "no price", "é\té\n", "b\t1\t2\t-\t-\t-\na\n", "a\t1\t2\t-\t-\t-\t5", "\n\n\n"] {
        let table = PriceTable::from_text(text.to_owned());
        for name in ["", "a", "b", "é", "zz"] {
            let _ = (table.find(name), table.relative(name), table.source(), table.rows().count());
        }
    }
}

#[test]
fn writes_for_an_hour_cost_more() {
    let prices = built_in();
    let million = 1_000_000;
    assert_eq!(prices.cost(&used("claude-opus-4-6", [0, 0, 0, million, 0])), Some(6.25));
    assert_eq!(prices.cost(&used("claude-opus-4-6", [0, 0, 0, million, million])), Some(10.0));
    // A part can't be larger than the whole.
    assert_eq!(prices.cost(&used("claude-opus-4-6", [0, 0, 0, million, 3 * million])), Some(10.0));
}

#[test]
fn a_long_prompt_has_a_price_of_its_own() {
    let prices = built_in();
    let cost = |tokens| prices.cost(&used("gemini-2.5-pro", tokens)).unwrap();
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    near(cost([100_000, 0, 100_000, 0, 0]), 0.1 * 1.25 + 0.1 * 0.125);
    near(cost([100_001, 0, 100_000, 0, 0]), 0.100_001 * 2.5 + 0.1 * 0.25);
    near(cost([100_000, 300_000, 0, 0, 0]), 0.1 * 1.25 + 0.3 * 10.0);
}

#[test]
fn tokens_weigh_what_they_cost() {
    let prices = built_in();
    let weighed = |model, tokens| prices.weighted_tokens(&used(model, tokens));
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
    near(weighed("claude-opus-4-6", [10, 10, 10, 20, 10]), 10.0 + 50.0 + 1.0 + 12.5 + 20.0);
    near(weighed("gpt-5.1", [10, 10, 10, 0, 0]), 10.0 + 80.0 + 1.0);
    // Of the same family.
    near(weighed("gpt-5.1-turbo-2031-01-01", [10, 10, 10, 0, 0]), 10.0 + 80.0 + 1.0);
    near(weighed("host/claude-haiku-77", [10, 10, 10, 10, 0]), 10.0 + 50.0 + 1.0 + 12.5);
    // Of no family.
    near(weighed("house-model", [10, 10, 10, 10, 0]), 10.0 + 50.0 + 1.0 + 12.5);
    near(weighed("", [10, 10, 0, 20, 10]), 10.0 + 50.0 + 12.5 + 20.0);
}

#[test]
fn what_the_agent_says_stays() {
    let mut usage = used("gpt-5.1", [1_000_000, 0, 0, 0, 0]);
    built_in().complete(&mut usage);
    assert_eq!((usage.cost_usd, usage.weighted_tokens), (Some(1.25), Some(1_000_000)));
    (usage.cost_usd, usage.weighted_tokens) = (Some(7.0), None);
    built_in().complete(&mut usage);
    assert_eq!((usage.cost_usd, usage.weighted_tokens), (Some(7.0), Some(1_000_000)));
    let mut unknown = used("house-model", [5, 1, 0, 0, 0]);
    built_in().complete(&mut unknown);
    assert_eq!((unknown.cost_usd, unknown.weighted_tokens), (None, Some(10)));
}

#[test]
fn each_model_is_listed_once() {
    let model = |input: f64, provider: &str| {
        serde_json::json!({"mode": "chat", "litellm_provider": provider, "input_cost_per_token": input / 1e6,
            "output_cost_per_token": 5.0 * input / 1e6})
    };
    let json = serde_json::json!({
        "claude-x-20300101": model(3.0, "anthropic"),
        "us.anthropic.claude-x-20300101-v1:0": model(3.3, "bedrock_converse"),
        "eu.anthropic.claude-x-20300101-v1:0": model(3.0, "bedrock_converse"),
        "azure/claude-x": model(9.0, "azure"),
        "moonshot/Kimi-Z": model(1.0, "moonshot"),
        "hoster/kimi-z": model(2.0, "hoster"),
        "hoster/llama-z": model(2.0, "hoster"),
        "free": model(0.0, "openai"),
        "dall-e": {"mode": "image_generation", "input_cost_per_token": 1.0, "output_cost_per_token": 1.0},
        "sample_spec": {"mode": "one of: chat", "input_cost_per_token": 0},
    });
    let table = table_from_litellm(json.to_string().as_bytes(), "test 1", "2030-01-01").unwrap();
    let rows: Vec<(String, f64)> = table.rows().map(|row| (row.name, row.price.input)).collect();
    let expected =
        [("claude-x", 3.0), ("hoster/llama-z", 2.0), ("kimi-z", 1.0), ("us.anthropic.claude-x", 3.3)];
    assert_eq!(rows, expected.map(|(name, price)| (name.to_owned(), price)));
    assert_eq!((table.source(), table.date()), ("test 1", "2030-01-01"));
    let prices = Prices::with_table(BTreeMap::new(), table);
    assert_eq!(prices.of("us.anthropic.claude-x-20300101-v1:0").map(|p| p.input), Some(3.3));
    assert_eq!(prices.of("eu.anthropic.claude-x-20300101-v1:0").map(|p| p.input), Some(3.0));
    for wrong in ["", "[]", "{}", r#"{"a": 5}"#] {
        assert!(table_from_litellm(wrong.as_bytes(), "", "").is_err(), "{wrong}");
    }
}

#[test]
fn tiers_are_read_in_both_forms() {
    let json = br#"{
        "a": {"mode": "chat", "tiered_pricing": [
            {"input_cost_per_token": 1e-06, "output_cost_per_token": 5e-06, "range": [0, 32000.0]},
            {"input_cost_per_token": 2e-06, "output_cost_per_token": 9e-06, "range": [32000.0, 128000.0]}]},
        "b": {"mode": "responses", "input_cost_per_token": 1e-06, "output_cost_per_token": 5e-06,
            "cache_read_input_token_cost": 1e-07, "input_cost_per_token_above_272k_tokens": 2e-06,
            "output_cost_per_token_above_272k_tokens": 9e-06, "input_cost_per_token_above_272k_tokens_priority": 5e-06}
    }"#;
    let table = table_from_litellm(json, "", "").unwrap();
    let long = |above, cache_read| LongPromptPrice {
        above,
        input: 2.0,
        output: 9.0,
        cache_read,
        ..LongPromptPrice::default()
    };
    assert_eq!(table.find("a").unwrap().long_prompts, [long(32_000, None)]);
    assert_eq!(table.find("b").unwrap().long_prompts, [long(272_000, Some(0.1))]);
}
