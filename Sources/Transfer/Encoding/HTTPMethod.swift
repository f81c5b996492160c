public import HTTPTypes

/// The method of a request (RFC 9110, section 9), such as `.get`.
public typealias HTTPMethod = HTTPRequest.Method
