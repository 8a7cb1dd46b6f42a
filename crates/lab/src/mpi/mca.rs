//! Parameters of Open MPI (MCA): the laboratory's and the user's, put together.
//!
//! If a parameter is given twice, Open MPI either joins the values with a comma and fails at the
//! nonsense, or silently takes one of the two. So every parameter is given once. The user's value
//! takes the place of the laboratory's, or is joined with it where both are lists. A user's value
//! for a parameter that the laboratory needs is refused.

use tracing::info;

use crate::lab::LabError;

/// A parameter and its value.
type Parameter = (String, String);

/// Takes the parameters out of a launcher's words: `--mca NAME VALUE`, in all its spellings.
/// Returns them and the other words.
pub(super) fn taken_out(words: &[String]) -> (Vec<Parameter>, Vec<String>) {
    let (mut parameters, mut others) = (Vec::<Parameter>::new(), Vec::new());
    let mut left = words.iter();
    while let Some(word) = left.next() {
        if !["--mca", "-mca", "--gmca", "-gmca"].contains(&word.as_str()) {
            others.push(word.clone());
            continue;
        }
        match (left.next(), left.next()) {
            (Some(name), Some(value)) => parameters.push((name.clone(), value.clone())),
            // The launcher itself says what is missing.
            (name, _) => others.extend(std::iter::once(word).chain(name).cloned()),
        }
    }
    (parameters, others)
}

/// Every parameter once; the laboratory's come first.
///
/// # Errors
/// [`LabError::Parameter`] when the user gives another value to a parameter that the laboratory
/// needs.
pub(super) fn merged(
    needed: &[(&str, &str)],
    usual: &[(&str, &str)],
    wanted: &[Parameter],
) -> Result<Vec<Parameter>, LabError> {
    if let Some((name, value)) = wanted.iter().find(|(name, _)| needed.iter().any(|(own, _)| own == name)) {
        let needs = needed.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value);
        return Err(LabError::Parameter { name: name.clone(), value: value.clone(), needs: needs.to_owned() });
    }
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut all: Vec<Parameter> = needed.iter().chain(usual).map(owned).collect();
    for (name, value) in wanted {
        // Of two lists of interfaces, one to include and one to exclude, Open MPI heeds one only.
        if let Some(opposite) = name.strip_suffix("_if_exclude").map(|stem| format!("{stem}_if_include")) {
            all.retain(|(own, _)| *own != opposite);
        }
        let Some((_, own)) = all.iter_mut().find(|(own, _)| own == name) else {
            all.push((name.clone(), value.clone()));
            continue;
        };
        let both = together(own, value);
        if both != *own {
            info!("--mca {name}: {both}, from yours ({value}) and the laboratory's ({own})");
            *own = both;
        }
    }
    Ok(all)
}

/// Joins two values of a parameter. Lists of what to leave out (`^a,b`) add up, and such a list is
/// subtracted from a list of what to take. Any other value of the user's takes the place of the
/// laboratory's.
fn together(own: &str, wanted: &str) -> String {
    let items = |list: &str| list.split(',').map(str::to_owned).collect::<Vec<_>>();
    match (own.strip_prefix('^'), wanted.strip_prefix('^')) {
        (Some(own), Some(wanted)) => {
            let mut all = items(own);
            all.extend(items(wanted).into_iter().filter(|item| !own.split(',').any(|known| known == item)));
            format!("^{}", all.join(","))
        }
        (None, Some(left_out)) => {
            let mut kept = items(own);
            kept.retain(|item| !left_out.split(',').any(|gone| gone == item));
            if kept.is_empty() { wanted.to_owned() } else { kept.join(",") }
        }
        (_, None) => wanted.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_ascii_whitespace().map(str::to_owned).collect()
    }

    fn all(options: &str) -> Result<Vec<Parameter>, LabError> {
        let usual = [("btl", "self,tcp"), ("coll", "^hcoll"), ("btl_tcp_if_include", "eth0")];
        merged(&[("plm", "rsh")], &usual, &taken_out(&words(options)).0)
    }

    fn value(options: &str, name: &str) -> Option<String> {
        let all = all(options).unwrap();
        let mut values = all.into_iter().filter_map(|(own, value)| (own == name).then_some(value));
        let first = values.next();
        assert_eq!(values.next(), None, "{name} is given twice with {options}");
        first
    }

    #[test]
    fn parameters_are_told_from_other_words() {
        let (parameters, others) = taken_out(&words("--tag-output --mca a 1 -mca b ^c,d --gmca e f -x G --mca h"));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(parameters, [pair("a", "1"), pair("b", "^c,d"), pair("e", "f")]);
        assert_eq!(others, words("--tag-output -x G --mca h"));
    }

    #[test]
    fn every_parameter_is_given_once_and_lists_are_put_together() {
        for (options, name, expected) in [
            ("", "btl", Some("self,tcp")),
            ("--mca btl self,tcp,sm", "btl", Some("self,tcp,sm")),
            ("--mca btl ^tcp", "btl", Some("self")),
            ("--mca coll ^han", "coll", Some("^hcoll,han")),
            ("--mca coll ^hcoll,han", "coll", Some("^hcoll,han")),
            ("--mca coll basic,libnbc,self", "coll", Some("basic,libnbc,self")),
            ("--mca coll ^han --mca coll ^tuned", "coll", Some("^hcoll,han,tuned")),
            ("--mca btl_tcp_if_include eth1", "btl_tcp_if_include", Some("eth1")),
            ("--mca btl_tcp_if_exclude lo", "btl_tcp_if_include", None),
            ("--mca btl_tcp_if_exclude lo", "btl_tcp_if_exclude", Some("lo")),
            ("--mca coll_base_verbose 10", "coll_base_verbose", Some("10")),
        ] {
            assert_eq!(value(options, name).as_deref(), expected, "{options}");
        }
    }

    #[test]
    fn what_the_laboratory_needs_is_not_given_up_in_silence() {
        let error = all("--mca plm slurm").unwrap_err().to_string();
        assert!(["plm", "slurm", "rsh"].iter().all(|word| error.contains(word)), "{error}");
    }
}
