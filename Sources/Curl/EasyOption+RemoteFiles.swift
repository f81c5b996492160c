import CCurl

/// Options of FTP, FTPS and SFTP.
extension EasyOption.Text {
    package static let knownHosts = EasyOption.Text(option: CURLOPT_SSH_KNOWNHOSTS)
    package static let privateKeyFile = EasyOption.Text(option: CURLOPT_SSH_PRIVATE_KEYFILE)
}

extension EasyOption.Number {
    package static let fileTime = EasyOption.Number(option: CURLOPT_FILETIME)
    package static let fileMethod = EasyOption.Number(option: CURLOPT_FTP_FILEMETHOD)
    package static let skipPassiveAddress = EasyOption.Number(option: CURLOPT_FTP_SKIP_PASV_IP)
    package static let transportSecurity = EasyOption.Number(option: CURLOPT_USE_SSL)
    package static let responseTimeout = EasyOption.Number(option: CURLOPT_SERVER_RESPONSE_TIMEOUT)
    package static let timeout = EasyOption.Number(option: CURLOPT_TIMEOUT_MS)
    package static let tlsVersion = EasyOption.Number(option: CURLOPT_SSLVERSION)
    package static let proxyTLSVersion = EasyOption.Number(option: CURLOPT_PROXY_SSLVERSION)
    package static let ignoresSize = EasyOption.Number(option: CURLOPT_IGNORE_CONTENT_LENGTH)
    package static let sshAuthentication = EasyOption.Number(option: CURLOPT_SSH_AUTH_TYPES)
}

extension EasyOption.Offset {
    package static let resumeFrom = EasyOption.Offset(option: CURLOPT_RESUME_FROM_LARGE)
}
