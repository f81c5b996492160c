import Glibc

/// What a machine that has other work may add to the times that tests compare.
///
/// `DLD_STRICT_TIMES=1` leaves none: for a machine at rest, where the figures themselves are to be shown.
enum TimeMargin {
    static let factor = getenv("DLD_STRICT_TIMES") == nil ? 1.25 : 1.0
}
