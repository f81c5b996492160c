/// The version of dld and dlctl, which are built together.
public enum ProductVersion {
    public static let version = "0.1.0"
}
