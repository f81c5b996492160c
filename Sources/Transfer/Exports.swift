// Targets beneath this one whose public types belong to the library. A program imports `Transfer` alone.
@_exported public import HTTPCaching
@_exported public import HTTPMessages
