//! Where we differ from the reference implementation, and why.

const KEY_TYPES: &str = "the language allows only bool, int, uint and string as keys; theirs does not check";
const EXACT_NUMBERS: &str = "we compare integers with doubles exactly; theirs rounds the integer first";
const ZONES: &str =
    "we know UTC and fixed offsets; a machine's zone database must not change a policy's meaning";
const INCOMPARABLE: &str = "we report elements that cannot be compared; theirs passes over them";
const ESCAPED_NAMES: &str = "we read names in backticks; theirs only with an option";
const MESSAGES: &str = "there are no messages to construct, and we say so";
const LAST_DAY: &str = "our timestamps end on the last but one day of the year 9999";
const JSON_WORDS: &str = "the words are those of our JSON reader";
const PATTERN_WORDS: &str = "the words are those of our regular expression engine";
const ADDRESS_WORDS: &str = "we do not say in which way an address is malformed";
const RANGE_WORDS: &str = "theirs names types of its implementation language";

/// Expressions with another outcome.
pub(crate) const OUTCOMES: &[(&str, &str)] = &[
    ("{1.5: \"a\"}", KEY_TYPES),
    ("{[1]: 2}", KEY_TYPES),
    ("{null: 2}", KEY_TYPES),
    ("dyn(9007199254740993) == 9007199254740992.0", EXACT_NUMBERS),
    ("dyn(9223372036854775807) < 9223372036854775808.0", EXACT_NUMBERS),
    ("\"%f\".format([1])", "theirs prints the failure of its own formatter into the text"),
    ("\"%s\".format([[?optional.of(1)]])", "theirs takes the optional in a nested list for its element"),
    ("double(\"1_000\")", "an underscore is no digit"),
    ("double(\"0x1p-2\")", "we read decimal numbers only"),
    ("string(timestamp(\"2024-01-01T00:00:00+02:00\"))", "a timestamp is an instant and is written in UTC"),
    ("timestamp(\"9999-12-31T23:59:59.999999999Z\")", LAST_DAY),
    ("timestamp(\"2024-02-29T23:30:45Z\").getHours(\"America/New_York\")", ZONES),
    ("[1, \"a\"].isSorted()", INCOMPARABLE),
    ("managedCluster.status.mixed.isSorted()", INCOMPARABLE),
    ("managedCluster.status.mixed.max()", INCOMPARABLE),
    ("quantity(\"1e30\").asApproximateFloat()", "our quantities end at about 1.7e29"),
    ("google.protobuf.Timestamp{}", MESSAGES),
    ("managedCluster.`kind`", ESCAPED_NAMES),
    ("managedCluster.metadata.labels.`feature.open-cluster-management.io/addon-x`", ESCAPED_NAMES),
];

/// Expressions whose static type differs.
pub(crate) const TYPES: &[(&str, &str)] = &[];

/// Expressions whose value agrees and whose cost does not. The vectors leave the cost out where it
/// depends on the order of a map, which is random in the reference implementation and sorted here.
pub(crate) const COSTS: &[(&str, &str)] = &[(
    "optional.of(1).optMap(x, optional.of(2).orValue(x))",
    "we compute a bound name that is mentioned, theirs one that is reached",
)];

/// Expressions that fail in both, with other words.
pub(crate) const ERROR_TEXTS: &[(&str, &str)] = &[
    ("managedCluster{}", MESSAGES),
    ("Foo{a: 1}", MESSAGES),
    ("a.b.Foo{}", MESSAGES),
    ("\"%.f\".format([1.5])", "theirs names a function of its implementation language"),
    ("\"not json\".parseJSON()", JSON_WORDS),
    ("\"1 2\".parseJSON()", JSON_WORDS),
    ("\"\".parseJSON()", JSON_WORDS),
    ("managedCluster.kind.all(x, true)", RANGE_WORDS),
    ("dyn(1).exists(x, true)", RANGE_WORDS),
    ("\"abc\".matches(\"a(?=b)\")", PATTERN_WORDS),
    ("timestamp(\"2024-02-29T23:30:45Z\").getHours(\"Nowhere/None\")", ZONES),
    ("timestamp(\"2024-02-29T23:30:45Z\").getHours(\"+2\")", ZONES),
    ("timestamp(\"9999-12-31T23:59:59Z\") + duration(\"1s\")", LAST_DAY),
    ("timestamp(\"9999-12-31T23:59:59Z\") - timestamp(\"0001-01-01T00:00:00Z\")", LAST_DAY),
    ("ip(\"192.168.0.256\")", ADDRESS_WORDS),
    ("ip(\"192.168.000.1\")", ADDRESS_WORDS),
    ("ip(\"192.168.0\")", ADDRESS_WORDS),
    ("ip(\"1.2.3.4/24\")", ADDRESS_WORDS),
    ("cidr(\"fe80::1%eth0/64\")", ADDRESS_WORDS),
    ("cidr(\"192.168.0.0/24\").containsIP(\"nope\")", "theirs loses the message on its way"),
];
