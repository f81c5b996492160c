import ControlClient
import Glibc
import TerminalScreen

/// The loop of the screen: keys and messages change the model, and the picture follows.
struct TopDriver {
    private let screen: Screen
    private let feed: TopFeed
    private var model: TopModel
    private let unicode: Bool

    /// The milliseconds after which the picture is drawn again for its countdowns.
    private static let interval: Int32 = 1_000

    init(connector: DaemonConnector, query: TopQuery, style: Terminal.Style) throws(ScreenError) {
        screen = try Screen(allowsColour: style.colour)
        unicode = style.unicode
        model = TopModel(query: query, size: screen.size)
        feed = try TopFeed(connector: connector, query: model.query, screen: screen.wakeSignal)
    }

    /// Runs until the user ends it.
    ///
    /// - Returns: the exit status.
    mutating func run() -> Int32 {
        defer {
            feed.stop()
            screen.close()
        }
        feed.start()
        while true {
            for message in feed.take() { model.receive(message) }
            feed.ask(model.query)
            screen.draw(TopView(model: model, unicode: unicode, now: model.shownTime(Clock.now())).frame())
            for event in screen.wait(milliseconds: Self.interval) {
                switch event {
                case .key(let key): if let status = perform(model.handle(key)) { return status }
                case .resized: model.resize(to: screen.size)
                case .continued: model.resize(to: screen.size)
                case .ended: return 128 + SIGHUP
                }
            }
        }
    }

    /// - Returns: the exit status if the program ends.
    private mutating func perform(_ effect: TopModel.Effect?) -> Int32? {
        switch effect {
        case nil: break
        case .quit: return ExitStatus.done.rawValue
        case .interrupt: return ExitStatus.interrupted.rawValue
        case .suspend:
            screen.suspend()
            model.resize(to: screen.size)
        case .repaint: screen.invalidate()
        case .perform(let action):
            if !feed.perform(action) {
                model.receive(.result(TopMessage("too many commands wait for the daemon", isRefusal: true)))
            }
        }
        return nil
    }
}
