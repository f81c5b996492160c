#ifndef MUTEXORDER_H
#define MUTEXORDER_H

// Nothing to call: that a program is linked with it is all.

#endif
