/// What dld and dlctl are of; both come from one build.
public enum Release {
    public static let version = "0.1.0"
}
