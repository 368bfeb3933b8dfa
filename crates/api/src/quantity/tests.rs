//! Expected bits were computed by Kubernetes' own library (k8s.io/apimachinery v0.36.4).

use proptest::prelude::*;

use super::*;

const SAME_BITS: &[(&str, u64)] = &[
    ("0", 0x0000_0000_0000_0000),
    ("00", 0x0000_0000_0000_0000),
    ("-0", 0x0000_0000_0000_0000),
    ("1", 0x3ff0_0000_0000_0000),
    ("+1", 0x3ff0_0000_0000_0000),
    ("-1", 0xbff0_0000_0000_0000),
    ("4", 0x4010_0000_0000_0000),
    ("10", 0x4024_0000_0000_0000),
    ("007", 0x401c_0000_0000_0000),
    ("100m", 0x3fb9_9999_9999_999a),
    ("500m", 0x3fe0_0000_0000_0000),
    ("1500m", 0x3ff8_0000_0000_0000),
    ("250m", 0x3fd0_0000_0000_0000),
    ("3920m", 0x400f_5c28_f5c2_8f5c),
    ("1n", 0x3e11_2e0b_e826_d695),
    ("1u", 0x3eb0_c6f7_a0b5_ed8d),
    ("100u", 0x3f1a_36e2_eb1c_432c),
    ("0.1", 0x3fb9_9999_9999_999a),
    ("0.5", 0x3fe0_0000_0000_0000),
    (".5", 0x3fe0_0000_0000_0000),
    ("5.", 0x4014_0000_0000_0000),
    ("1.5", 0x3ff8_0000_0000_0000),
    ("1.", 0x3ff0_0000_0000_0000),
    ("1k", 0x408f_4000_0000_0000),
    ("1M", 0x412e_8480_0000_0000),
    ("1G", 0x41cd_cd65_0000_0000),
    ("1T", 0x426d_1a94_a200_0000),
    ("1P", 0x430c_6bf5_2634_0000),
    ("1E", 0x43ab_c16d_674e_c800),
    ("12E", 0x43e4_d112_0d7b_1600),
    ("1Ki", 0x4090_0000_0000_0000),
    ("1Mi", 0x4130_0000_0000_0000),
    ("16Gi", 0x4210_0000_0000_0000),
    ("1Ti", 0x4270_0000_0000_0000),
    ("1Pi", 0x4310_0000_0000_0000),
    ("1Ei", 0x43b0_0000_0000_0000),
    ("7Ei", 0x43dc_0000_0000_0000),
    ("8Ei", 0x43e0_0000_0000_0000),
    ("9Ei", 0x43e0_0000_0000_0000),
    ("-9Ei", 0xc3e0_0000_0000_0000),
    ("1.5Gi", 0x41d8_0000_0000_0000),
    ("0.5Ki", 0x4080_0000_0000_0000),
    ("0.3Mi", 0x4113_3333_3333_3334),
    ("32879852Ki", 0x421f_5b4e_c000_0000),
    ("16384256Ki", 0x420f_4020_0000_0000),
    ("16393084Ki", 0x420f_446f_8000_0000),
    ("7.89Gi", 0x41ff_8f5c_28f5_c290),
    ("1e3", 0x408f_4000_0000_0000),
    ("1E3", 0x408f_4000_0000_0000),
    ("1e+3", 0x408f_4000_0000_0000),
    ("1e-3", 0x3f50_624d_d2f1_a9fc),
    ("1e-9", 0x3e11_2e0b_e826_d695),
    ("1e-10", 0x3e11_2e0b_e826_d695),
    ("1e-40", 0x3e11_2e0b_e826_d695),
    ("12345e-12", 0x3e4b_ead3_593f_1cb2),
    ("0.0000000001", 0x3e11_2e0b_e826_d695),
    ("0.123456789123456789", 0x3fbf_9add_3b84_e65a),
    ("123456789012345678", 0x437b_69b4_ba63_0f35),
    ("1234567890123456789", 0x43b1_2210_f47d_e982),
    ("9223372036854775807", 0x43e0_0000_0000_0000),
    ("9223372036854775808", 0x43e0_0000_0000_0000),
    ("99999999999999999999999999", 0x4554_adf4_b732_0335),
    ("99999999999999999999999999k", 0x45f4_31e0_fae6_d722),
    ("0.000000000999999999999999999", 0x3e11_2e0b_e826_d695),
    ("1e18", 0x43ab_c16d_674e_c800),
    ("1e19", 0x43e1_58e4_6091_3d00),
    ("1e22", 0x4480_f0cf_064d_d592),
    ("1e23", 0x44b5_2d02_c7e1_4af6),
    ("1e33", 0x46c8_a6e3_2246_c99d),
    ("3e40", 0x4856_0a5f_7552_857c),
    ("7e100", 0x54e0_0077_80e2_2b0d),
    ("1e308", 0x7fe1_ccf3_85eb_c8a0),
    ("1e309", 0x7ff0_0000_0000_0000),
    ("1e1000", 0x7ff0_0000_0000_0000),
    ("-0e5", 0x0000_0000_0000_0000),
    ("1e4294967296", 0x3ff0_0000_0000_0000),
    ("1e4294967299", 0x408f_4000_0000_0000),
    ("123456789012345678901e300", 0x7ff0_0000_0000_0000),
    ("9223372036854775807Ki", 0x43e0_0000_0000_0000),
    ("0.00000000000000000000", 0x0000_0000_0000_0000),
    ("1.00000000000000000001", 0x3ff0_0000_0044_b830),
    ("999999999.9999999999", 0x41cd_cd65_0000_0001),
    ("1.0000000001Ki", 0x4090_0000_0006_e987),
    ("0.0000000001Ki", 0x3e7b_a61b_299e_8158),
    ("1234567.123456789012Mi", 0x4272_d687_1f9a_dd38),
    ("8191.999999999999999999Pi", 0x43e0_0000_0000_0000),
    ("8192Pi", 0x43e0_0000_0000_0000),
    ("8191Pi", 0x43df_ff00_0000_0001),
    ("100000000000000000Ki", 0x43e0_0000_0000_0000),
    ("9007199254740993", 0x4340_0000_0000_0000),
    ("9007199254740993m", 0x42a0_624d_d2f1_a9fc),
    ("123456789.123456789", 0x419d_6f34_547e_6b75),
    ("-1.5", 0xbff8_0000_0000_0000),
    ("-500m", 0xbfe0_0000_0000_0000),
    ("+.5k", 0x407f_4000_0000_0000),
];

const REFUSED: &[&str] = &[
    "e3",
    "Gi",
    ".",
    "+",
    "-",
    "",
    "x",
    "1.5.5",
    "1 Gi",
    "1gi",
    "1K",
    "1mi",
    "1e",
    "1e1.5",
    "1e99999999999999999999",
    "1ee3",
    "1e--3",
    "1i",
    "٣",
    "1Gi ",
    " 1",
    "1Zi",
    "0x10",
    "1_000",
    "NaN",
    "Inf",
    "1KiB",
    "--1",
    "+-1",
];

#[test]
fn amounts_become_the_same_float_as_in_kubernetes() {
    for (text, bits) in SAME_BITS {
        let float = Quantity::from(*text).approximate_f64().unwrap();
        assert_eq!(float.to_bits(), *bits, "{text}: {float:e} instead of {:e}", f64::from_bits(*bits));
        assert_eq!(Quantity::parse(text), Ok(Quantity::from(*text)));
    }
}

#[test]
fn zero_times_an_exponent_out_of_range_is_not_a_number() {
    assert!(Quantity::from("0e1000").approximate_f64().unwrap().is_nan());
}

#[test]
fn what_kubernetes_refuses_is_refused_and_so_is_a_text_without_a_digit() {
    for text in REFUSED {
        assert!(Quantity::parse(text).is_err(), "{text:?}");
        assert!(Quantity::from(*text).approximate_f64().is_err(), "{text:?}");
    }
}

#[test]
fn numbers_and_texts_are_written_back_as_they_came() {
    for json in ["4", "\"4\"", "\"16Gi\"", "\"not an amount\"", "18446744073709551615"] {
        let read: Quantity = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
    }
    assert_eq!(Quantity::from(4).approximate_f64(), Quantity::from("4").approximate_f64());
}

#[test]
fn a_very_long_amount_is_read_in_linear_time() {
    let long = format!("{}.{}Ei", "9".repeat(200_000), "9".repeat(200_000));
    assert_eq!(Quantity::from(long.as_str()).approximate_f64(), Ok(9_223_372_036_854_775_807_f64));
    assert_eq!(Quantity::from("1e-2147483648").approximate_f64(), Ok(1e-9));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,40}") {
        let _ = Quantity::parse(&text);
    }

    #[test]
    fn no_well_formed_amount_makes_the_reader_panic(
        text in "[+-]?[0-9]{0,30}(\\.[0-9]{0,30})?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,12})?",
    ) {
        if let Ok(float) = Quantity::from(text.as_str()).approximate_f64() {
            prop_assert!(float >= 0.0 || text.starts_with('-') || float.is_nan());
        }
    }

    #[test]
    fn integers_are_exact(amount in -9_007_199_254_740_992_i64..=9_007_199_254_740_992) {
        prop_assert_eq!(Quantity::from(amount).approximate_f64(), Ok(amount as f64));
    }
}

#[test]
fn an_amount_is_read_as_it_was_written_and_nothing_else_is_one() {
    let read = |text: &str| serde_json::from_str::<Quantity>(text);
    for text in ["4", "-3", "18446744073709551615", "0.5", "\"16Gi\"", "\"\\u0034\""] {
        let amount = read(text).unwrap();
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_value(&amount).unwrap(), value, "{text}");
        assert_eq!(serde_json::from_value::<Quantity>(value).unwrap(), amount, "{text}");
    }
    for text in ["true", "null", "[]", "{}"] {
        let told = read(text).unwrap_err().to_string();
        assert!(told.contains("expected an amount: a number or a text"), "{told}");
    }
}
