import Glibc

/// The factor by which tests extend time limits, for machines with other work.
///
/// `DLD_STRICT_TIMES=1` sets it to 1, for an idle machine on which the figures themselves are to be shown.
enum TimeMargin {
    static let factor = getenv("DLD_STRICT_TIMES") == nil ? 1.25 : 1.0
}
