/// The deadline of the call whose handler runs: calls made in it end with it.
enum CallScope {
  @TaskLocal static var deadline: ContinuousClock.Instant?
}
