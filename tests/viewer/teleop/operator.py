"""A scripted operator, who uses nothing but the commands of a session."""


def steps(session, frames):
    for _ in range(frames):
        session.step()


def press_the_button(session, *, pitch=1.1):
    """Go over the target, press, and lift."""
    x, y, z = session.twin.target
    session.move(position=(x, y, z + 0.03), pitch=pitch)
    steps(session, 45)
    session.press()
    while session.hand.pressing:
        session.step()
    steps(session, 5)


def record(session, **how):
    """Record an episode of the whole task and keep it."""
    session.start()
    press_the_button(session, **how)
    return session.keep()


def record_briefly(session, frames=5):
    """Record an episode of a few frames and keep it."""
    session.start()
    session.nudge(0.004, 0.0, 0.0)
    steps(session, frames)
    return session.keep()
